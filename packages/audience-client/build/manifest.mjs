// In the repository, package.json points to the sources. While `npm pack` runs, it must point to the build instead.
//   node build/manifest.mjs pack     applies `publishConfig` to package.json
//   node build/manifest.mjs restore  restores package.json
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(dirname(fileURLToPath(import.meta.url)));
const manifest = join(folder, 'package.json');
/** Backup of the repository's package.json. If packing is killed, the next run restores the backup first. */
const backup = join(folder, '.package.json.kept');
const license = join(folder, 'LICENSE');

function restore() {
  if (existsSync(backup)) renameSync(backup, manifest);
  rmSync(license, { force: true });
}

function pack() {
  restore();
  // Drop `private`, which only prevents accidental publishing of the sources.
  const { private: _, devDependencies, publishConfig, ...rest } = JSON.parse(readFileSync(manifest, 'utf8'));
  const { prepack, postpack } = rest.scripts;
  // The two scripts are retained, so that packing after a killed run still restores the original file.
  const packed = { ...rest, ...publishConfig, scripts: { prepack, postpack } };
  copyFileSync(join(folder, '..', '..', 'LICENSE'), license);
  copyFileSync(manifest, backup);
  writeFileSync(manifest, `${JSON.stringify(packed, null, 2)}\n`);
}

const step = { pack, restore }[process.argv[2]];
if (step === undefined) {
  console.error('usage: node build/manifest.mjs pack|restore');
  process.exit(2);
}
step();
