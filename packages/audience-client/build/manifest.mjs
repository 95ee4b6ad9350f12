// `npm pack` takes the package.json that lies in the folder. In the repository that one points at the sources; packed, it
// must point at what was built. So it is replaced before packing and put back afterwards.
//   node build/manifest.mjs pack     replaces it by what `publishConfig` says
//   node build/manifest.mjs restore  puts it back
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(dirname(fileURLToPath(import.meta.url)));
const manifest = join(folder, 'package.json');
/**
 * The repository's own package.json while the other one is in its place. If a pack was killed, this file is still here,
 * and the next pack first puts it back.
 */
const kept = join(folder, '.package.json.kept');
const license = join(folder, 'LICENSE');

function restore() {
  if (existsSync(kept)) renameSync(kept, manifest);
  rmSync(license, { force: true });
}

function pack() {
  restore();
  // `private` protects the sources from being published by mistake. Whoever publishes the tarball does it on purpose.
  const { private: _, devDependencies, publishConfig, ...rest } = JSON.parse(readFileSync(manifest, 'utf8'));
  const { prepack, postpack } = rest.scripts;
  // These two scripts stay in the packed file. Without them a pack after one that was killed would take the packed file
  // for the repository's own.
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
