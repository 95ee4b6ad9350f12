import { UsageError } from '../command.ts';

/** Deeper than any real event; a longer path is a mistake. */
const MEMBERS_MAX = 16;
const BYTES_MAX = 512;
const ENDS_MEMBER = '.';
const ESCAPE = '\\';

/**
 * The members of a path such as `economy.coins`, outermost first. A dot in a name is written `\.`, a backslash `\\`.
 * Only members of objects: a number is a name too, never an index.
 * @throws UsageError that says what is wrong with the path
 */
export function parsePath(text: string): readonly string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is refused
  if (/[\u0000-\u001f\u007f]/.test(text)) throw new UsageError('--path: expected no control characters');
  if (Buffer.byteLength(text) > BYTES_MAX) throw new UsageError(`--path: expected at most ${BYTES_MAX} bytes`);
  const members = splitMembers(text);
  if (members.includes(''))
    throw new UsageError('--path: expected names between the dots, such as economy.coins; a dot of a name is \\.');
  if (members.length > MEMBERS_MAX) throw new UsageError(`--path: expected at most ${MEMBERS_MAX} members`);
  return members;
}

function splitMembers(text: string): string[] {
  const members = [''];
  const append = (char: string) => {
    members[members.length - 1] += char;
  };
  let isEscaped = false;
  for (const char of text) {
    if (isEscaped) {
      if (char !== ENDS_MEMBER && char !== ESCAPE)
        throw new UsageError('--path: expected . or \\ behind a backslash: economy\\.coins is one name');
      append(char);
      isEscaped = false;
    } else if (char === ESCAPE) isEscaped = true;
    else if (char === ENDS_MEMBER) members.push('');
    else append(char);
  }
  if (isEscaped) throw new UsageError('--path: expected . or \\ behind the last backslash');
  return members;
}
