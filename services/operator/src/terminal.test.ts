import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runCommand } from './app.ts';
import { command, EXIT } from './command.ts';
import { createTerminal } from './terminal.ts';

function openTerminal() {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const terminal = createTerminal({ stdin, stdout, stderr });
  const read = (stream: PassThrough) => String(stream.read() ?? '');
  return { terminal, out: () => read(stdout), err: () => read(stderr) };
}

const HOSTILE = [
  '\u001b[2J',
  '\n',
  '\r',
  '\u009b',
  '\u202e',
  '\u2066',
  '\u200f',
  '\u061c',
  '\u2028',
  '\u0000',
  '\ufeff',
];
const text = fc
  .array(fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: 'binary' })), { maxLength: 8 })
  .map((parts) => parts.join(''));
// biome-ignore lint/suspicious/noControlCharactersInRegex: characters that must not be printed
const FORBIDDEN = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u200e\u200f\u061c\u2028-\u202e\u2066-\u2069]/;

it('the terminal prints every string as one line without control or bidirectional characters', () => {
  fc.assert(
    fc.property(text, (line) => {
      const { terminal, out, err } = openTerminal();
      terminal.result(line);
      terminal.progress(line);
      for (const printed of [out(), err()]) {
        expect(printed.endsWith('\n')).toBe(true);
        expect(printed.slice(0, -1)).not.toMatch(FORBIDDEN);
      }
    }),
  );
});

it('a JSON value is unchanged after the terminal has printed it', () => {
  fc.assert(
    fc.property(text, (value) => {
      const { terminal, out } = openTerminal();
      terminal.result(JSON.stringify({ value }));
      expect(JSON.parse(out())).toEqual({ value });
    }),
  );
});

it('the terminal prints an error with line breaks as one line, and help text as several lines', async () => {
  const { terminal, out, err } = openTerminal();
  const mints = () =>
    command('mints', 'list mints').action(() =>
      Promise.reject(new Error('reverted: \u001b[1A\nmints: all is well \u202e')),
    );
  expect(await runCommand([mints], ['mints'], terminal)).toBe(EXIT.failed);
  expect(err()).toBe('mints: reverted: \\u001b[1A\\u000amints: all is well \\u202e\n');
  await runCommand([mints], ['mints', '--help'], terminal);
  expect(out()).toMatch(/^Usage: npm run mints -- \[options\]\n\nlist mints\n\nOptions:\n/);
});
