import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Client } from '../conformance/client.ts';
import type { ConformanceGateway } from '../conformance/gateway.ts';

/** Pinned, because each version generates different requests. */
const VERSION = '4.32.5';
const FOLDER = fileURLToPath(new URL('../../.playline/fuzz/', import.meta.url));
const VENV = `${FOLDER}venv`;
const STAMP = `${VENV}/version`;
const CHECKS = [
  'not_a_server_error',
  'response_schema_conformance',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
];
/** Longer than any response should take. Schemathesis reports a timeout as a failure. */
const REQUEST_MAX_S = '60';

/** @returns the program's exit code; 127 if the program does not exist */
function run(program: string, args: readonly string[], stdio: 'inherit' | 'ignore'): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd: FOLDER, stdio: ['ignore', stdio, stdio] });
    child.once('error', () => resolve(127));
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

/** Installs Schemathesis into the checkout's state folder. @returns why the installation failed; null on success */
export async function installSchemathesis(): Promise<string | null> {
  if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === VERSION) return null;
  mkdirSync(FOLDER, { recursive: true });
  if ((await run('python3', ['--version'], 'ignore')) !== 0) return 'python3 is not installed';
  if ((await run('python3', ['-m', 'venv', VENV], 'ignore')) !== 0)
    return 'python3 has no venv; on Debian: sudo apt-get install -y python3-venv';
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', `schemathesis==${VERSION}`];
  if ((await run(`${VENV}/bin/python3`, install, 'ignore')) !== 0)
    return `pip could not install schemathesis ${VERSION}; to retry, run: ${VENV}/bin/python3 ${install.join(' ')}`;
  writeFileSync(STAMP, VERSION);
  return null;
}

/** Tests every operation with requests generated from the OpenAPI document. @returns the exit code of Schemathesis */
export function runSchemathesis(gateway: Client & ConformanceGateway, seconds: number, seed: number): Promise<number> {
  const args = ['run', `${gateway.base}/openapi.json`, '--workers', '1', '--continue-on-failure', '--no-color'];
  const bounds = ['--max-time', String(seconds), '--request-timeout', REQUEST_MAX_S, '--seed', String(seed)];
  // Warnings are off because Schemathesis warns about requests that the gateway correctly rejects.
  const headers = [
    ...['-H', `x-service-publishable-key: ${gateway.publishableKey}`],
    ...['-H', `x-service-api-key: ${gateway.secretKey}`],
  ];
  return run(
    `${VENV}/bin/schemathesis`,
    [...args, '--checks', CHECKS.join(), '--warnings', 'off', ...bounds, ...headers],
    'inherit',
  );
}
