import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { bareEnvironment } from '@playline/testkit';

const OPERATOR = new URL('../main.ts', import.meta.url).pathname;

/** Runs the operator program in a separate process, in a folder without a local stack. */
export function runMain(
  environment: Readonly<Record<string, string>>,
  args: readonly string[],
): Promise<{ code: number | null; out: string; err: string }> {
  return new Promise((resolve) => {
    const env = { ...bareEnvironment(), ...environment };
    const child = execFile(process.execPath, [OPERATOR, ...args], { env, cwd: tmpdir() }, (_, out, err) =>
      resolve({ code: child.exitCode, out, err }),
    );
  });
}
