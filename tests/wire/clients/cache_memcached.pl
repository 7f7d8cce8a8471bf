#!/usr/bin/perl
# libcache-memcached-perl
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cache::Memcached;
use Steps;

my $client = Cache::Memcached->new({ servers => ["127.0.0.1:$ARGV[0]"], connect_timeout => 60, select_timeout => 60 });
Steps::play(Steps::common($client));
