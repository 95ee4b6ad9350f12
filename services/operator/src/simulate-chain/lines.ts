import { type Line, readLines } from '../import/lines.ts';

/** Texts as lines that the import reads from a file. */
export function toLines(texts: readonly string[]): { bytes: number; read: () => AsyncGenerator<Line> } {
  const file = Buffer.from(texts.map((text) => `${text}\n`).join(''));
  const chunks = async function* () {
    yield file;
  };
  return { bytes: file.length, read: () => readLines(chunks()) };
}
