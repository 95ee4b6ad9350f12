import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { CHECKOUT, stackPathsOf } from '@playline/infra/local';
import { runCommand } from '../../infra/local/command.ts';
import { logFileOf } from '../../infra/local/paths.ts';

const PACKAGES = {
  promtool: 'prometheus',
  prometheus: 'prometheus',
  'prometheus-alertmanager': 'prometheus-alertmanager',
  'prometheus-node-exporter': 'prometheus-node-exporter',
  'prometheus-blackbox-exporter': 'prometheus-blackbox-exporter',
} as const;

const paths = stackPathsOf();
const FOLDER = join(CHECKOUT, '.playline', 'prometheus');

/**
 * Returns the path of a program from the Debian packages of Prometheus. The packages are unpacked, not installed,
 * because an installed package starts its service.
 * @throws Error if the package cannot be downloaded
 */
export async function provideProgram(name: keyof typeof PACKAGES): Promise<string> {
  const folder = join(FOLDER, PACKAGES[name]);
  const program = join(folder, 'usr', 'bin', name);
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  const options = { folder, logFile: logFileOf(paths, 'apt') };
  await runCommand('apt-get', ['-q', 'download', PACKAGES[name]], options).catch(async () => {
    // This machine has no package lists yet. Separate lists do not require root.
    const lists = join(folder, 'lists');
    mkdirSync(join(lists, 'partial'), { recursive: true });
    const flags = ['-q', `-oDir::State::lists=${lists}`, '-oDir::Cache::pkgcache=', '-oDir::Cache::srcpkgcache='];
    await runCommand('apt-get', [...flags, 'update'], options);
    await runCommand('apt-get', [...flags, 'download', PACKAGES[name]], options);
  });
  // Another process may unpack the same package at the same time, with the same result.
  await runCommand('sh', ['-c', 'dpkg-deb -x *.deb .'], options);
  return program;
}
