# ruby-dalli with the binary protocol, in which releases before 3.2 speak alone. What comes of a `set` and a `get`.
require 'dalli'

Dalli.logger.level = 5
client = Dalli::Client.new("127.0.0.1:#{ARGV[0]}", protocol: :binary, socket_timeout: 60, socket_max_failures: 0)
begin
  client.set('key', 'value', 0, raw: true)
  puts "served: #{client.get('key', raw: true).inspect}"
rescue Dalli::DalliError => e
  puts "refused: #{e.class}"
end
