// Build script, run by `npm pack`. Plain JavaScript, because the caller's Node may be too old to run TypeScript.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Bundles for script tags. Each bundle defines one global object. */
const SCRIPTS = [
  { input: 'src/index.ts', file: 'playline-audience.min.js', name: 'PlaylineAudience' },
  { input: 'src/autocapture/index.ts', file: 'playline-autocapture.min.js', name: 'PlaylineAutocapture' },
];
/** Supported by every browser released since 2020. */
const TARGET = 'es2020';

const folder = dirname(dirname(fileURLToPath(import.meta.url)));

/** Compiles every source file to an ES module with type declarations in `dist/`. */
function buildModules() {
  const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));
  const args = [join(typescript, 'bin', 'tsc'), '-p', join(folder, 'tsconfig.build.json'), '--target', TARGET];
  execFileSync(process.execPath, args, { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] });
  const dist = join(folder, 'dist');
  for (const path of readdirSync(dist, { recursive: true }).map((name) => join(dist, String(name)))) {
    if (!path.endsWith('.d.ts')) continue;
    // The compiler rewrites `./x.ts` imports in JavaScript output, but not in type declarations.
    writeFileSync(path, readFileSync(path, 'utf8').replace(/(['"]\.[^'"]*)\.ts(?=['"])/g, '$1.js'));
  }
}

async function buildScripts() {
  // Imported lazily: a Node version too old for the bundler then fails with the message below, not with a syntax error.
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
  console.error(`Node ${process.version} cannot build this package. Use Node 20.19 or later.`);
  process.exit(1);
}
rmSync(join(folder, 'dist'), { recursive: true, force: true });
buildModules();
await buildScripts();
