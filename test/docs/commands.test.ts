import { spawnSync } from 'node:child_process';
import { type Example, toCommand } from '@playline/api-docs';
import { expect, it } from 'vitest';
import { DOCS_KEYS } from '../../services/gateway/src/docs/examples.ts';
import { PUBLIC_URL, SOURCE } from './gateways.ts';

const [first] = SOURCE.operations.flatMap(({ examples }) => examples);
const hardToQuote: Example = {
  ...(first as Example),
  name: 'hard-to-quote',
  request: {
    method: 'PUT',
    target: `/a?b='c'&d=$HOME`,
    headers: { 'x-a': `it's "$HOME" \\ \`id\`` },
    body: `'\n"$(id)"'\\'`,
  },
};

function argsOf(command: string): string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${command}`;
  const env = { PUBLISHABLE_KEY: DOCS_KEYS.publishable, SECRET_KEY: DOCS_KEYS.secret };
  const { stdout, stderr, status } = spawnSync('sh', ['-c', script], { env, encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  return stdout.split('\0').slice(0, -1);
}

// examples.test.ts parses the command of every example.
it.each([first as Example, hardToQuote])(
  'the curl command for the example $name sends exactly the documented request',
  ({ request, ...rest }) => {
    const { method, target, headers, body } = request;
    expect(argsOf(toCommand({ request, ...rest }, { publicUrl: PUBLIC_URL, operations: [] }))).toEqual([
      ...['-i', '-X', method, PUBLIC_URL + target],
      ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
      ...(body === null ? [] : ['--data-binary', body]),
    ]);
  },
);
