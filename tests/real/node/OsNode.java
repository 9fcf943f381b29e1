import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.knn.plugin.KNNPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.transport.Netty4Plugin;

/** One search node in this process, its plugins on the class path. Arguments: a home folder and a port, 0 for a free one. Ends when standard input closes. */
public class OsNode extends Node {
    static final List<Class<? extends Plugin>> PLUGINS = List.of(
        Netty4Plugin.class, CommonAnalysisPlugin.class, PainlessPlugin.class, KNNPlugin.class);

    OsNode(Environment environment) {
        super(environment, PLUGINS, true);
    }

    public static void main(String[] args) throws Exception {
        Path home = Path.of(args[0]).toAbsolutePath();
        for (String folder : List.of("data", "logs", "modules", "plugins")) {  // a node looks for all of them
            Files.createDirectories(home.resolve(folder));
        }
        Settings settings = Settings.builder().put("path.home", home.toString()).put("http.port", args[1]).build();
        OsNode node = new OsNode(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), home.resolve("config"), () -> "node"));
        node.start();
        int port = node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress().getPort();
        System.out.println("http://127.0.0.1:" + port);
        while (System.in.read() >= 0) {
            // whoever started the node holds the other end
        }
        node.close();
        System.exit(0);
    }
}
