# ruby-dalli. It stores marshalled objects if raw does not say otherwise.
require 'dalli'

Dalli.logger.level = 5
DEFAULTS = ARGV[2] == 'defaults'
RAW = { raw: !DEFAULTS }.freeze
$client = Dalli::Client.new("127.0.0.1:#{ARGV[0]}", protocol: ARGV[1].to_sym, compress: DEFAULTS, socket_timeout: 60,
                            socket_max_failures: 0)
$token = 0

VERBS = {
  'get' => ->(key) { $client.get(key, RAW) },
  'gets' => ->(key) { value, $token = $client.get_cas(key); value },
  'multi' => ->(*keys) { found = $client.get_multi(*keys); keys.map { |key| found[key] } },
  'set' => ->(key, data, ttl = 0) { $client.set(key, data, ttl.to_i, RAW) },
  'add' => ->(key, data) { $client.add(key, data, 0, RAW) },
  'append' => ->(key, data) { $client.append(key, data) },
  'prepend' => ->(key, data) { $client.prepend(key, data) },
  'cas' => ->(key, data) { $client.set_cas(key, data, $token, 0, RAW) },
  'incr' => ->(key, number) { $client.incr(key, number.to_i) },
  'decr' => ->(key, number) { $client.decr(key, number.to_i) },
  'touch' => ->(key, ttl) { $client.touch(key, ttl.to_i) },
  'delete' => ->(key) { $client.delete(key) }
}.freeze

def text(value)
  value.nil? ? 'missing' : "<#{value}>"
end

def answer(verb, outcome)
  case verb
  when 'multi' then outcome.map { |value| text(value) }.join("\t")
  when 'get', 'gets' then text(outcome)
  when 'incr', 'decr' then outcome.nil? ? 'missing' : outcome.to_s
  else outcome ? 'yes' : 'no'
  end
end

$stdout.sync = true
while (line = $stdin.gets)
  verb, *words = line.chomp.tr("\v", "\n").split("\t", -1)
  begin
    puts VERBS.key?(verb) ? answer(verb, VERBS[verb].call(*words)).tr("\n", "\v") : 'none'
  rescue Dalli::DalliError => e
    puts "error: #{e.message.split.join(' ')}"
  end
end
