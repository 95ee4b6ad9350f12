import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { CHECKOUT } from '@playline/infra/paths';

const NAME = 'audience-client';

/** A project outside the repository in which only the packed client is installed. */
export interface Game {
  readonly folder: string;
  /** The package's source folder after packing. */
  readonly source: string;
  /** Folder of the installed client. */
  readonly installed: string;
  /** Lists the installed files, relative to the package folder. */
  files(): string[];
  /** Writes a file into the project. */
  write(name: string, text: string): void;
  /** Runs a script in the project with the current Node. @throws Error with the output if the script fails */
  run(...args: string[]): Promise<string>;
  remove(): void;
}

/** Packs the client as described in its README, and installs the tarball offline into an empty project. */
export async function createGame(): Promise<Game> {
  const top = mkdtempSync(join(tmpdir(), 'playline-game-'));
  const source = copySource(top);
  const tarball = await pack(top, source);
  const folder = join(top, 'game');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "name": "game", "private": true }\n');
  await npm(top, folder, ['install', '--offline', '--no-audit', '--no-fund', join(top, tarball)]);
  const installed = join(folder, 'node_modules', '@playline', NAME);
  return {
    folder,
    source,
    installed,
    files: () =>
      readdirSync(installed, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => relative(installed, join(parentPath, name))),
    write: (name, text) => writeFileSync(join(folder, name), text),
    run: (...args) => output(process.execPath, args, { cwd: folder }),
    remove: () => rmSync(top, { recursive: true, force: true }),
  };
}

/** Copies the sources, because packing temporarily replaces package.json, which other tests read. */
function copySource(top: string): string {
  const checkout = join(top, 'checkout');
  const source = join(checkout, 'packages', NAME);
  cpSync(join(CHECKOUT, 'packages', NAME), source, { recursive: true });
  for (const name of ['package.json', 'tsconfig.json', 'LICENSE']) cpSync(join(CHECKOUT, name), join(checkout, name));
  symlinkSync(join(CHECKOUT, 'node_modules'), join(checkout, 'node_modules'));
  return source;
}

/** @returns the name of the tarball in `top` */
async function pack(top: string, source: string): Promise<string> {
  // Simulates an earlier pack that was killed.
  await output(process.execPath, [join('build', 'manifest.mjs'), 'pack'], { cwd: source });
  await npm(top, source, ['pack', '--pack-destination', top]);
  const [tarball = '', ...rest] = readdirSync(top).filter((name) => name.endsWith('.tgz'));
  if (rest.length > 0) throw new Error('npm pack created more than one tarball');
  return tarball;
}

function npm(top: string, cwd: string, args: string[]): Promise<string> {
  // Remove variables set by the outer npm, which would change the behaviour of this npm.
  const environment = Object.entries(process.env).filter(([name]) => !/^npm_|^INIT_CWD$/i.test(name));
  const settings = { npm_config_cache: join(top, 'cache'), npm_config_userconfig: join(top, 'npmrc') };
  return output('npm', args, { cwd, env: { ...Object.fromEntries(environment), ...settings } });
}

async function output(program: string, args: string[], options: { cwd: string; env?: NodeJS.ProcessEnv }) {
  try {
    const { stdout } = await promisify(execFile)(program, args, options);
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args.join(' ')}: ${error}\n${stdout}${stderr}`);
  }
}
