#!/usr/bin/perl
# libcache-memcached-fast-perl. What it does is said in scenario.py.
use strict;
use warnings;
use Cache::Memcached::Fast;

my ($port, $one, $other, $items) = @ARGV;
my $client = Cache::Memcached::Fast->new({
    servers => ["127.0.0.1:$port"], compress_threshold => -1, connect_timeout => 60, io_timeout => 60,
});

sub reply {
    my ($what, $good) = @_;
    print "$what: ", $good ? "yes" : "no", "\n";
}

sub value {
    my ($what, $text) = @_;
    print "$what: ", defined $text ? "<$text>" : "missing", "\n";
}

# (value, token)
sub gets {
    my $found = $client->gets($_[0]);
    return $found ? ($found->[1], $found->[0]) : (undef, 0);
}

my ($text, $token);
value("missing set", $client->get($one));
reply("append to what is missing", $client->append($one, "ann,bob,"));
reply("add", $client->add($one, "ann,bob,"));
reply("append", $client->append($one, "cyd"));
value("set", $client->get($one));
reply("prepend removes", $client->prepend($one, "bob,"));
value("set", $client->get($one));
(undef, $token) = gets($one);
reply("cas", $client->cas($one, $token, "dee,eve,"));
reply("cas with an old token", $client->cas($one, $token, "fay,"));
($text, $token) = gets($one);
value("gets", $text);
reply("append", $client->append($one, "gus,"));
reply("cas after a change", $client->cas($one, $token, "fay,"));
value("set", $client->get($one));
reply("set replaces", $client->set($other, "hal,hal,ida"));
reply("append to what is missing", $client->append($items, "1,2,"));
reply("add", $client->add($items, "1,2,"));
reply("append to the list", $client->append($items, "2,3,"));
reply("prepend to the list", $client->prepend($items, "0,"));
value("list", $client->get($items));
(undef, $token) = gets($items);
reply("cas of the list", $client->cas($items, $token, "9,8,9,"));
reply("cas of the list with an old token", $client->cas($items, $token, "7,"));
my $found = $client->get_multi($one, $other, "$one-missing", $items);
print "found: ", scalar(keys %$found), "\n";
value("set", $found->{$one});
value("other set", $found->{$other});
value("list", $found->{$items});
for my $key ($one, $other, $items) {
    reply("delete", $client->delete($key));
    value("deleted", $client->get($key));
}
