// Downloads the stores while npm installs the packages, which saves 25 s. Uses only built-in modules for this reason.
import { installStores } from './install-stores.ts';
import { stackPathsOf } from './paths.ts';

try {
  await installStores(stackPathsOf(), (line) => console.error(line));
} catch {
  process.exitCode = 1;
}
