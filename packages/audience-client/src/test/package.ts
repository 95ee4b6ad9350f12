import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { CHECKOUT } from '@playline/infra/paths';

const NAME = 'audience-client';

/** A project outside the repository that has installed the packed client and nothing else. */
export interface Game {
  readonly folder: string;
  /** The package's own folder, after it was packed. */
  readonly source: string;
  /** The installed client. */
  readonly installed: string;
  /** Files of the package, as paths from its top. */
  files(): string[];
  /** Writes a file into the project. */
  write(name: string, text: string): void;
  /** Runs a program with this Node in the project; throws with its output when it fails. */
  run(...args: string[]): Promise<string>;
  remove(): void;
}

/** Packs the client as its README describes, and installs the tarball into an empty project, without a network. */
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

/** Packing replaces package.json for a moment, and other tests read it. So a copy of the sources is packed. */
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
  // The state that a killed pack leaves behind.
  await output(process.execPath, [join('build', 'manifest.mjs'), 'pack'], { cwd: source });
  await npm(top, source, ['pack', '--pack-destination', top]);
  const [tarball = '', ...others] = readdirSync(top).filter((name) => name.endsWith('.tgz'));
  if (others.length > 0) throw new Error('npm pack made more than one tarball');
  return tarball;
}

function npm(top: string, cwd: string, args: string[]): Promise<string> {
  // The npm that runs the tests has set these variables. They would make this npm believe that it is part of that run.
  const environment = Object.entries(process.env).filter(([name]) => !/^npm_|^INIT_CWD$/i.test(name));
  const own = { npm_config_cache: join(top, 'cache'), npm_config_userconfig: join(top, 'npmrc') };
  return output('npm', args, { cwd, env: { ...Object.fromEntries(environment), ...own } });
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
