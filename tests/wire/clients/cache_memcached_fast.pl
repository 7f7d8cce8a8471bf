#!/usr/bin/perl
# libcache-memcached-fast-perl
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cache::Memcached::Fast;
use Steps;

my $client = Cache::Memcached::Fast->new({ servers => ["127.0.0.1:$ARGV[0]"], connect_timeout => 60, io_timeout => 60 });
my $token;
Steps::play(
    Steps::common($client),
    gets => sub { my $found = $client->gets($_[0]) or return undef; $token = $found->[0]; $found->[1] },
    cas => sub { $client->cas($_[0], $token, $_[1]) },
);
