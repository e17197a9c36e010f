// Reads paths from the standard input and prints the errors of Kotlin's parser for each, tab-separated.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jetbrains.kotlin.cli.FrontendConfigurationKeysKt;
import org.jetbrains.kotlin.cli.jvm.compiler.EnvironmentConfigFiles;
import org.jetbrains.kotlin.cli.jvm.compiler.KotlinCoreEnvironment;
import com.intellij.openapi.util.Disposer;
import com.intellij.psi.PsiErrorElement;
import com.intellij.psi.util.PsiTreeUtil;
import org.jetbrains.kotlin.compiler.plugin.CompilerPluginRegistrar;
import org.jetbrains.kotlin.config.CommonConfigurationKeys;
import org.jetbrains.kotlin.config.CompilerConfiguration;
import org.jetbrains.kotlin.psi.KtPsiFactory;

class Kotlin {
    public static void main(String[] args) throws Exception {
        var configuration = new CompilerConfiguration();
        configuration.put(CommonConfigurationKeys.MODULE_NAME, "judge");
        FrontendConfigurationKeysKt.setExtensionsStorage(configuration, new CompilerPluginRegistrar.ExtensionStorage());
        var environment = KotlinCoreEnvironment.createForProduction(
                Disposer.newDisposable(), configuration, EnvironmentConfigFiles.JVM_CONFIG_FILES);
        var factory = new KtPsiFactory(environment.getProject(), false);
        var paths = new BufferedReader(new InputStreamReader(System.in));
        for (String path = paths.readLine(); path != null; path = paths.readLine()) {
            var text = Files.readString(Path.of(path)).replace("\r\n", "\n");
            var file = factory.createFile("judged.kt", text);
            var line = new StringBuilder(path);
            for (var error : PsiTreeUtil.collectElementsOfType(file, PsiErrorElement.class)) {
                line.append('\t').append(error.getTextOffset()).append(": ");
                line.append(error.getErrorDescription().replaceAll("\\s+", " "));
            }
            System.out.println(line);
        }
        System.exit(0);
    }
}
