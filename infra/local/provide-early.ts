// Downloads the stores while npm installs the packages, which saves 25 s. Therefore it uses only built-in modules.
import { stackPathsOf } from './paths.ts';
import { provideStores } from './provide.ts';

try {
  await provideStores(stackPathsOf(), (line) => console.error(line));
} catch {
  process.exitCode = 1;
}
