#!/usr/bin/perl
# libcache-memcached-libmemcached-perl
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cache::Memcached::libmemcached;
use Steps;

my $client = Cache::Memcached::libmemcached->new({ servers => ["127.0.0.1:$ARGV[0]"] });
$client->set_binary_protocol($ARGV[1] eq "binary");
Steps::play(Steps::common($client));
