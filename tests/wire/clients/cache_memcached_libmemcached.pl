#!/usr/bin/perl
# libcache-memcached-libmemcached-perl
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cache::Memcached::libmemcached;
use Memcached::libmemcached qw(MEMCACHED_BEHAVIOR_POLL_TIMEOUT MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT);
use Steps;

my $client = Cache::Memcached::libmemcached->new({ servers => ["127.0.0.1:$ARGV[0]"] });
$client->memcached_behavior_set($_, 60000) for MEMCACHED_BEHAVIOR_POLL_TIMEOUT, MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT;
$client->set_binary_protocol($ARGV[1] eq "binary");
Steps::play(Steps::common($client));
