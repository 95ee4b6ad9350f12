// Downloads the stores while npm installs the packages, which saves 25 s. Uses only built-in modules for that reason.
import { stackPathsOf } from './paths.ts';
import { provideStores } from './provide.ts';

try {
  await provideStores(stackPathsOf(), (line) => console.error(line));
} catch {
  process.exitCode = 1;
}
