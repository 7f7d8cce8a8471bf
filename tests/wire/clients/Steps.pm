# Reads steps and prints answers for the Perl clients. steps.py says what they are.
package Steps;
use strict;
use warnings;

# What a client says in its own words through die is an error.
sub play {
    my %verbs = @_;
    $| = 1;
    while (my $line = <STDIN>) {
        chomp $line;
        $line =~ tr/\x0b/\n/;
        my ($verb, @words) = split /\t/, $line, -1;
        my $answer = $verbs{$verb} ? eval { answer($verb, $verbs{$verb}->(@words)) } : "none";
        $answer = "error: " . join(" ", split(" ", $@)) unless defined $answer;
        $answer =~ tr/\n/\x0b/;
        print "$answer\n";
    }
}

sub text {
    return defined $_[0] ? "<$_[0]>" : "missing";
}

sub answer {
    my ($verb, @outcome) = @_;
    return join("\t", map { text($_) } @outcome) if $verb eq "multi";
    return text($outcome[0]) if $verb eq "get" || $verb eq "gets";
    return $outcome[0] ? "yes" : "no" unless $verb eq "incr" || $verb eq "decr";
    # A number of 0 is "0E0" where the client wants it to be true.
    return defined $outcome[0] && $outcome[0] ne "" ? $outcome[0] + 0 : "missing";
}

# The verbs that all three clients say in the same way; the object is a Cache::Memcached or what takes its calls.
sub common {
    my $client = shift;
    return (
        get => sub { $client->get($_[0]) },
        multi => sub { my $found = $client->get_multi(@_); map { $found->{$_} } @_ },
        set => sub { $client->set($_[0], $_[1], $_[2] || 0) },
        (map { my $verb = $_; $verb => sub { $client->$verb(@_) } } grep { $client->can($_) } qw(add append prepend incr decr touch delete)),
    );
}

1;
