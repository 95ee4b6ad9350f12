// Finds and installs the programs required by the stack.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { findProgram, runCommand } from './command.ts';
import { areJarsInstalled } from './jars.ts';
import { findJava, JAVA_MAJOR_MIN } from './java.ts';
import { logFileOf, type StackPaths } from './paths.ts';

export interface MissingPart {
  what: string;
  debian: string;
  brew: string;
}

/** Finds missing programs. Maven is required only until the jars are installed. */
export function findMissingParts(paths: StackPaths): MissingPart[] {
  const missing: MissingPart[] = [];
  if (findJava() === null)
    missing.push({ what: `Java ${JAVA_MAJOR_MIN} or newer`, debian: 'default-jre-headless', brew: 'openjdk@21' });
  if (!areJarsInstalled(paths) && findProgram('mvn') === null)
    missing.push({ what: 'Maven', debian: 'maven', brew: 'maven' });
  if (findProgram('redis-server') === null) missing.push({ what: 'Redis', debian: 'redis-server', brew: 'redis' });
  return missing;
}

/** Chromium and browsers based on it. The headless shell uses a third less CPU. */
const BROWSERS = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
/** Browser packages by distribution. Other distributions use `chromium`. */
const BROWSER_PACKAGES: Readonly<Record<string, string>> = {
  debian: 'chromium-headless-shell',
  ubuntu: 'chromium-browser',
};

export function findBrowser(): string | null {
  for (const name of BROWSERS) {
    const path = findProgram(name);
    if (path !== null) return path;
  }
  return null;
}

function browserPackage(): string {
  let release = '';
  try {
    release = readFileSync('/etc/os-release', 'utf8');
  } catch {
    return 'chromium';
  }
  // Derivatives of Ubuntu have `ID_LIKE="ubuntu debian"`.
  const names = [...release.matchAll(/^ID(?:_LIKE)?="?([^"\n]+)/gm)].flatMap(([, ids = '']) => ids.split(' '));
  const name = names.includes('ubuntu') ? 'ubuntu' : (names[0] ?? '');
  return BROWSER_PACKAGES[name] ?? 'chromium';
}

/** Finds missing test programs: a browser, and OpenSSL for the certificates of stores with TLS. */
export function findMissingTestParts(): MissingPart[] {
  const missing: MissingPart[] = [];
  if (findBrowser() === null) missing.push({ what: 'Chromium', debian: browserPackage(), brew: '--cask chromium' });
  if (findProgram('openssl') === null) missing.push({ what: 'OpenSSL', debian: 'openssl', brew: 'openssl@3' });
  return missing;
}

/** Returns the command that installs the missing programs. */
export function installCommand(missing: readonly MissingPart[]): string {
  if (process.platform === 'darwin') return `brew install ${missing.map((part) => part.brew).join(' ')}`;
  const packages = missing.map((part) => part.debian).join(' ');
  return `sudo apt-get update && sudo apt-get install -y --no-install-recommends ${packages}`;
}

/** Returns a command prefix for running as root without a password: [] as root, null if impossible. */
function rootPrefix(): string[] | null {
  if (process.getuid?.() === 0) return [];
  const sudo = findProgram('sudo');
  if (sudo === null || spawnSync(sudo, ['-n', 'true'], { stdio: 'ignore' }).status !== 0) return null;
  return [sudo, '-n'];
}

/** Installs the missing programs with apt-get. @throws Error with the command to run if this is impossible */
export async function installMissingParts(
  paths: StackPaths,
  report: (line: string) => void,
  find: () => MissingPart[] = () => findMissingParts(paths),
): Promise<void> {
  const missing = find();
  if (missing.length === 0) return;
  const names = missing.map((part) => part.what).join(', ');
  const toError = () =>
    new Error(`${names}: not installed. Run the following command, then start again:\n    ${installCommand(missing)}`);
  if (process.platform !== 'linux' || !existsSync('/usr/bin/apt-get')) throw toError();
  const prefix = rootPrefix();
  if (prefix === null) throw toError();
  const packages = missing.map((part) => part.debian);
  report(`installing ${names} (apt-get install ${packages.join(' ')})`);
  // `sudo` resets the environment, so env(1) sets the variable.
  const [program = '', ...first] = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q'];
  const options = { folder: paths.checkout, logFile: logFileOf(paths, 'apt') };
  await runCommand(program, [...first, 'update'], options);
  await runCommand(program, [...first, 'install', '-y', '--no-install-recommends', ...packages], options);
  const stillMissing = find();
  if (stillMissing.length > 0)
    throw new Error(`${stillMissing.map((part) => part.what).join(', ')}: not found after apt-get install`);
}
