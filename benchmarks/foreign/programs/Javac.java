// Reads paths from the standard input and prints the errors of javac's parser for each, tab-separated.
import com.sun.source.util.JavacTask;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.List;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaFileObject;
import javax.tools.ToolProvider;

class Javac {
    public static void main(String[] args) throws Exception {
        var compiler = ToolProvider.getSystemJavaCompiler();
        var paths = new BufferedReader(new InputStreamReader(System.in));
        try (var files = compiler.getStandardFileManager(null, null, null)) {
            for (String path = paths.readLine(); path != null; path = paths.readLine()) {
                var found = new DiagnosticCollector<JavaFileObject>();
                var units = files.getJavaFileObjects(Path.of(path));
                var task = compiler.getTask(null, files, found, List.of("-proc:none"), null, units);
                ((JavacTask) task).parse();
                var line = new StringBuilder(path);
                for (var one : found.getDiagnostics()) {
                    if (one.getKind() == Diagnostic.Kind.ERROR) {
                        line.append('\t').append(one.getLineNumber()).append(": ");
                        line.append(one.getMessage(null).replaceAll("\\s+", " "));
                    }
                }
                System.out.println(line);
            }
        }
    }
}
