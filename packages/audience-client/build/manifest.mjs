// Points package.json at the build while `npm pack` runs; in the repository it points at the sources.
//   node build/manifest.mjs pack     replaces it by its `publishConfig`
//   node build/manifest.mjs restore  restores it
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(dirname(fileURLToPath(import.meta.url)));
const manifest = join(folder, 'package.json');
/** The repository's package.json during a pack. After a killed pack, the next one restores it first. */
const kept = join(folder, '.package.json.kept');
const license = join(folder, 'LICENSE');

function restore() {
  if (existsSync(kept)) renameSync(kept, manifest);
  rmSync(license, { force: true });
}

function pack() {
  restore();
  // `private` only protects the sources from being published by mistake.
  const { private: _, devDependencies, publishConfig, ...rest } = JSON.parse(readFileSync(manifest, 'utf8'));
  const { prepack, postpack } = rest.scripts;
  // Kept, because a pack after a killed one must still restore the repository's file.
  const packed = { ...rest, ...publishConfig, scripts: { prepack, postpack } };
  copyFileSync(join(folder, '..', '..', 'LICENSE'), license);
  copyFileSync(manifest, kept);
  writeFileSync(manifest, `${JSON.stringify(packed, null, 2)}\n`);
}

const step = { pack, restore }[process.argv[2]];
if (step === undefined) {
  console.error('usage: node build/manifest.mjs pack|restore');
  process.exit(2);
}
step();
