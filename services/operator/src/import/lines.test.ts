import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { UsageError } from '../command.ts';
import { LINE_BYTES_MAX, type Line, openLineSource, readLines } from './lines.ts';

const { signal: stop } = new AbortController();

async function* chunksOf(bytes: Buffer, sizes: readonly number[]) {
  let from = 0;
  for (let index = 0; from < bytes.length; index++) {
    const size = sizes[index % sizes.length]!;
    yield bytes.subarray(from, from + size);
    from += size;
  }
}
async function collect(lines: AsyncIterable<Line>): Promise<Line[]> {
  const list: Line[] = [];
  for await (const line of lines) list.push(line);
  return list;
}
const read = (bytes: Buffer | string, sizes = [64 * 1024]) =>
  collect(readLines(chunksOf(Buffer.from(bytes as string), sizes)));

it('readLines returns the same lines and line numbers for all chunk sizes', async () => {
  const line = fc.oneof(fc.json(), fc.constant(''), fc.constant('  '), fc.constant('{"half":'), fc.string());
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });
  await fc.assert(
    fc.asyncProperty(fc.array(line), sizes, fc.constantFrom('\n', '\r\n'), async (generated, cuts, end) => {
      const texts = generated.map((each) => each.replace(/[\n\r\uFEFF]/g, ' '));
      const expected = texts.flatMap((each, index): Line[] => {
        if (each.trim() === '') return [];
        try {
          return [{ number: index + 1, value: JSON.parse(each) as unknown, fault: null }];
        } catch {
          return [{ number: index + 1, value: undefined, fault: 'is not valid JSON' }];
        }
      });
      expect(await read(texts.join(end), cuts)).toEqual(expected);
      expect(await read(texts.map((each) => each + end).join(''), cuts)).toEqual(expected);
    }),
  );
});

it('readLines reports lines that are too long or not UTF-8, and continues with the next line', async () => {
  const bytes = Buffer.concat([
    Buffer.from([0x22, 0xff, 0x22, 0x0a]),
    Buffer.from(`"${'x'.repeat(LINE_BYTES_MAX)}"\n`),
    Buffer.from(`"${'x'.repeat(LINE_BYTES_MAX - 2)}"\n{"a":1}`),
  ]);
  const lines = await read(bytes, [100_000]);
  expect(lines.map(({ number, fault }) => [number, fault])).toEqual([
    [1, 'is not valid UTF-8'],
    [2, `is longer than ${LINE_BYTES_MAX} bytes`],
    [3, null],
    [4, null],
  ]);
  expect(lines[3]!.value).toEqual({ a: 1 });
});

it('openLineSource can be interrupted while it waits for standard input', async () => {
  const controller = new AbortController();
  const source = openLineSource(null, { stdin: new PassThrough(), stop: controller.signal });
  controller.abort();
  await expect(source).rejects.toThrow('interrupted before all lines were read');
});

it('lines from standard input can be read twice', async () => {
  const source = await openLineSource(null, { stdin: Readable.from([Buffer.from('1\n2')]), stop });
  onTestFinished(source.close);
  for (let i = 0; i < 2; i++) expect((await collect(source.read())).map(({ value }) => value)).toEqual([1, 2]);
});

it.each([
  ['gzip', gzipSync('1\n'), 'zcat'],
  ['zstd', zstdCompressSync('1\n'), 'zstdcat'],
])('openLineSource refuses %s files, and names the command that decompresses them', async (_name, bytes, command) => {
  const folder = mkdtempSync(join(tmpdir(), 'lines-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'compressed');
  writeFileSync(path, bytes);
  const sources = [
    openLineSource(path, { stdin: Readable.from([]), stop }),
    openLineSource(null, { stdin: Readable.from([bytes]), stop }),
  ];
  for (const source of sources) {
    const fault = await source.catch((refused: unknown) => refused);
    expect(fault).toBeInstanceOf(UsageError);
    expect(String(fault)).toContain(`${command} FILE`);
  }
});

it('openLineSource reads a file, and refuses folders and missing files', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lines-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'lines'), '\uFEFF1\n');
  const source = await openLineSource(join(folder, 'lines'), { stdin: Readable.from([]), stop });
  expect(await collect(source.read())).toEqual([{ number: 1, value: 1, fault: null }]);
  for (const none of [folder, join(folder, 'none')])
    await expect(openLineSource(none, { stdin: Readable.from([]), stop })).rejects.toThrow(UsageError);
});
