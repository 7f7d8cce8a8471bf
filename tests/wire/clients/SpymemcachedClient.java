// libspymemcached-java. steps.py says what steps are.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.ConnectionFactoryBuilder.Protocol;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.internal.OperationFuture;
import net.spy.memcached.ops.StatusCode;
import net.spy.memcached.transcoders.SerializingTranscoder;

public class SpymemcachedClient {
    private static MemcachedClient client;
    private static long token;

    private static String text(Object value) {
        return value == null ? "missing" : "<" + value + ">";
    }

    private static String yesNo(OperationFuture<Boolean> future) throws Exception {
        if (future.get()) {
            return "yes";
        }
        StatusCode code = future.getStatus().getStatusCode();
        if (code == StatusCode.ERR_NOT_FOUND || code == StatusCode.ERR_EXISTS || code == StatusCode.ERR_NOT_STORED) {
            return "no";
        }
        throw new Exception(future.getStatus().getMessage());
    }

    private static int ttl(List<String> words) {
        return words.size() > 2 ? Integer.parseInt(words.get(2)) : 0;
    }

    private static String count(long number) {
        return number < 0 ? "missing" : Long.toString(number);
    }

    private static String multi(List<String> keys) {
        Map<String, Object> found = client.getBulk(keys);
        List<String> words = new ArrayList<>();
        for (String key : keys) {
            words.add(text(found.get(key)));
        }
        return String.join("\t", words);
    }

    private static String gets(String key) {
        CASValue<Object> found = client.gets(key);
        token = found == null ? 0 : found.getCas();
        return text(found == null ? null : found.getValue());
    }

    private static String carryOut(String verb, List<String> words) throws Exception {
        String key = words.get(0);
        String data = words.size() > 1 ? words.get(1) : "";
        switch (verb) {
            case "get": return text(client.get(key));
            case "gets": return gets(key);
            case "multi": return multi(words);
            case "set": return yesNo(client.set(key, ttl(words), data));
            case "add": return yesNo(client.add(key, 0, data));
            case "append": return yesNo(client.append(key, data));
            case "prepend": return yesNo(client.prepend(key, data));
            case "cas": return client.cas(key, token, data) == CASResponse.OK ? "yes" : "no";
            case "incr": return count(client.incr(key, Integer.parseInt(data)));
            case "decr": return count(client.decr(key, Integer.parseInt(data)));
            case "touch": return yesNo(client.touch(key, Integer.parseInt(data)));
            case "delete": return yesNo(client.delete(key));
            default: return "none";
        }
    }

    public static void main(String[] args) throws Exception {
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        Logger.getLogger("net.spy.memcached").setLevel(Level.OFF);
        SerializingTranscoder transcoder = new SerializingTranscoder();
        if (args.length < 3) {
            transcoder.setCompressionThreshold(Integer.MAX_VALUE);
        }
        client = new MemcachedClient(
            new ConnectionFactoryBuilder()
                .setProtocol(args[1].equals("binary") ? Protocol.BINARY : Protocol.TEXT)
                .setOpTimeout(60000)
                .setMaxReconnectDelay(0) // it reconnects after each CLIENT_ERROR
                .setTranscoder(transcoder)
                .build(),
            List.of(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0]))));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            List<String> words = Arrays.asList(line.replace('\u000b', '\n').split("\t"));
            try {
                String answer = carryOut(words.get(0), words.subList(1, words.size()));
                System.out.println(answer.replace('\n', '\u000b'));
            } catch (Exception error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                System.out.println("error: " + String.join(" ", String.valueOf(cause.getMessage()).trim().split("\\s+")));
            }
        }
        client.shutdown();
    }
}
