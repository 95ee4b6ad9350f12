// What `npm pack` runs first. Plain JavaScript: it runs on whichever Node the caller has, which may be too old for types.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The files for script tags: each puts one object on the page. */
const SCRIPTS = [
  { input: 'src/index.ts', file: 'playline-audience.min.js', name: 'PlaylineAudience' },
  { input: 'src/autocapture/index.ts', file: 'playline-autocapture.min.js', name: 'PlaylineAutocapture' },
];
/** Every browser since 2020 reads it. */
const TARGET = 'es2020';

const folder = dirname(dirname(fileURLToPath(import.meta.url)));

/** Modules with their types: `dist/**`, one file for each of the sources. */
function buildModules() {
  const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));
  const args = [join(typescript, 'bin', 'tsc'), '-p', join(folder, 'tsconfig.build.json'), '--target', TARGET];
  execFileSync(process.execPath, args, { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] });
  const dist = join(folder, 'dist');
  for (const path of readdirSync(dist, { recursive: true }).map((name) => join(dist, String(name)))) {
    if (!path.endsWith('.d.ts')) continue;
    // The compiler rewrites `./x.ts` in what it emits to run, and not in what it emits to be read by itself.
    writeFileSync(path, readFileSync(path, 'utf8').replace(/(['"]\.[^'"]*)\.ts(?=['"])/g, '$1.js'));
  }
}

async function buildScripts() {
  // Here, so that a Node too old for the bundler gets the sentence below and no syntax error.
  const { build } = await import('rolldown');
  for (const { input, file, name } of SCRIPTS)
    await build({
      input: join(folder, input),
      platform: 'browser',
      transform: { target: TARGET },
      output: { file: join(folder, 'dist', file), format: 'iife', name, minify: true, sourcemap: true },
    });
}

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Node ${process.version} cannot build this package: 20.19 or newer is needed`);
  process.exit(1);
}
rmSync(join(folder, 'dist'), { recursive: true, force: true });
buildModules();
await buildScripts();
