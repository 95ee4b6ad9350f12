import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { posix } from 'node:path';
import { gzipSync } from 'node:zlib';

// Builds the client from its sources when a service starts, so that a deployment needs no build step. `npm pack` builds
// smaller files for production (see the README).

export interface SdkFile {
  readonly type: string;
  readonly text: string;
  readonly bytes?: Buffer;
}

const FOLDER = new URL('../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, FOLDER), 'utf8');
const JAVASCRIPT = 'text/javascript; charset=utf-8';

/** Returns the files for `/sdk`, keyed by path. */
export function buildSdk(): ReadonlyMap<string, SdkFile> {
  const sources = readdirSync(FOLDER, { recursive: true })
    .map((name) => String(name).replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.ts') && !/\.test\.ts$|^(test|sdk)\//.test(name));
  const modules = new Map(sources.map((name) => [name, toModule(read(name))]));
  const script = (entry: string, name: string): SdkFile => ({ type: JAVASCRIPT, text: toScript(modules, entry, name) });
  return new Map([
    ['/sdk/playline-audience-client.tgz', { type: 'application/gzip', text: '', bytes: pack(modules) }],
    ['/sdk/playline-audience.js', script('index.ts', 'PlaylineAudience')],
    ['/sdk/playline-autocapture.js', script('autocapture/index.ts', 'PlaylineAutocapture')],
  ]);
}

/** Removes types, comments at the start of a line, and the empty lines that remain. */
const toModule = (text: string): string =>
  withoutWarnings(() => stripTypeScriptTypes(text))
    .replaceAll(/^\s*\/\*\*[\s\S]*?\*\/$/gm, '')
    .replaceAll(/^\s*\/\/.*$/gm, '')
    .replaceAll(/[ \t]+$/gm, '')
    .replaceAll(/\n{2,}/g, '\n');

/** Node warns once that the function is experimental, although the services themselves run from TypeScript. */
function withoutWarnings<T>(run: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return run();
  } finally {
    process.emitWarning = emitWarning;
  }
}

const IMPORT = /^(import|export) (\{[^}]*\}) from '([^']*)';$/gm;
const EXPORT = /^export (?=(?:async )?(?:function|const|class) (\w+))/gm;

/** Wraps each module in a function, so that equal names do not collide, and defines one global object. */
function toScript(modules: ReadonlyMap<string, string>, entry: string, name: string): string {
  const ordered = new Map<string, string>();
  const add = (path: string) => {
    if (ordered.has(path)) return;
    const names: string[] = [];
    const body = (modules.get(path) ?? '')
      .replaceAll(IMPORT, (_, keyword: string, members: string, target: string) => {
        const imported = posix.join(posix.dirname(path), target);
        add(imported);
        if (keyword === 'export') for (const one of members.match(/\w+/g) ?? []) names.push(one);
        return `const ${members} = modules['${imported}'];`;
      })
      .replaceAll(EXPORT, (_, exported: string) => {
        names.push(exported);
        return '';
      });
    ordered.set(path, `modules['${path}'] = (() => {${body}return { ${names.join(', ')} };\n})();\n`);
  };
  add(entry);
  return `'use strict';\nglobalThis.${name} = (() => {\nconst modules = {};\n${[...ordered.values()].join('')}return modules['${entry}'];\n})();\n`;
}

const TYPE =
  /(?:^\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?^export (?:interface \w+[^{]*\{[\s\S]*?^\}|type \w+ = (?!ReturnType)[^;\n]*;)/gm;
const FUNCTION = /^export (function (?:open|createBrowser|createMemory)\w+\(.*\): \w+) \{$/gm;

/** Returns the exported types and functions of the modules as declarations. */
function toDeclarations(paths: readonly string[]): string {
  const lines = paths.map(read).flatMap((text) => [
    ...(text.match(TYPE) ?? []),
    ...[...text.matchAll(FUNCTION)].map(([, signature = '']) => {
      return `export declare ${signature.replaceAll(/(\w+): (\w+) = \{\}/g, '$1?: $2')};`;
    }),
  ]);
  return `${lines.join('\n')}\n`;
}

function pack(modules: ReadonlyMap<string, string>): Buffer {
  const { publishConfig, name, version, description, license, type, sideEffects } = JSON.parse(read('../package.json'));
  const { exports, engines, main, types } = publishConfig;
  const manifest = { name, version, description, license, type, sideEffects, engines, main, types, exports };
  const files = [...modules].map(([path, text]): [string, string] => [
    `dist/${path.replace(/\.ts$/, '.js')}`,
    text.replaceAll(/(from '[^']*)\.ts'/g, "$1.js'"),
  ]);
  const declarations = toDeclarations(['message.ts', 'options.ts', 'store.ts', 'client.ts', 'post.ts']);
  const autocapture = `import type { AudienceClient } from '../index.js';\n${toDeclarations(['autocapture/index.ts'])}`;
  return toTarball([
    ['package.json', `${JSON.stringify(manifest, null, 2)}\n`],
    ['README.md', read('../README.md')],
    ...files,
    ['dist/index.d.ts', declarations],
    ['dist/autocapture/index.d.ts', autocapture],
  ]);
}

const BLOCK_BYTES = 512;

/** Returns a compressed archive in the ustar format with fixed times and owners, so that its bytes depend only on the files. */
function toTarball(files: readonly (readonly [path: string, text: string])[]): Buffer {
  const parts = files.flatMap(([path, text]) => {
    const content = Buffer.from(text);
    const header = Buffer.alloc(BLOCK_BYTES);
    const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
    header.write(`package/${path}`, 0);
    header.write(octal(0o644, 7) + octal(0, 7) + octal(0, 7) + octal(content.length, 11) + octal(0, 11), 100);
    header.write('        0', 148);
    header.write('ustar\x0000', 257);
    header.write(
      `${octal(
        header.reduce((sum, byte) => sum + byte, 0),
        6,
      )} `,
      148,
    );
    return [header, content, Buffer.alloc((BLOCK_BYTES - (content.length % BLOCK_BYTES)) % BLOCK_BYTES)];
  });
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * BLOCK_BYTES)]));
}
