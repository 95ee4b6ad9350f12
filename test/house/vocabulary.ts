import { fileURLToPath } from 'node:url';
import { readTree } from './tree.ts';

// Fails the lint step on words that do not mean here what they mean elsewhere: `node test/house/vocabulary.ts [prefix
// of paths]`. Names are read word by word (`askNode` is `ask` and `node`), in code, SQL, Lua and Markdown. The value
// says what to write instead. There is no baseline: a finding is rewritten, or its pattern of ordinary use is added to
// `USUAL`.
const BANNED: readonly (readonly [RegExp, string])[] = [
  [/\b(stand|stands|standing|stood|standstills?)\b/g, 'exists, is stored, is paused, is current or applies'],
  [/\b(go|goes|went|going) on\b/g, 'continues or resumes'],
  [/\b(ask|asks|asked|asking)\b/g, 'query, request, params or prompt'],
  [/\bquestions?\b/g, 'query, request, params or prompt'],
  [/\b(tell|tells|told|telling|say|says|said|saying)\b/g, 'log, return, report or show'],
  [/\bwords\b/g, 'message, text or subcommand'],
  [/\b(place|places|placed)\b/g, 'offset, position, location or store'],
  [/\b(look|looks|looked|looking)\b/g, 'poll, check or read'],
  [/\bdeeds?\b/g, 'action'],
  [/\bfates?\b/g, 'outcome'],
  [/\b(mend|mends|mended|mending)\b/g, 'fix, repair or recover'],
  [/\b(anew|at once|meanwhile)\b/g, 'again, immediately, or nothing'],
  [/\b(whoever|nobody|somebody)\b/g, 'the caller, no one, or a real subject'],
  [/\b(of it|as it was)\b/g, 'name the thing'],
  [/\bletters?\b/g, 'dead letter'],
  [/\bhindrances?\b/g, 'blocker'],
  [/\b(level (with|again)|level (keys|stores|records))\b/g, 'in sync'],
  [/\b(company|came)\b/g, 'concurrent readers, or another verb'],
  [/\bnouns?\b/g, 'record store'],
  [/\broom\b/g, 'reservation or capacity'],
  [/\b(theirs|ours)\b/g, 'name the thing'],
  [/\bvain\b/g, 'say what had no effect'],
];

/** Ordinary uses of these words: fixed expressions of English and names that contracts or libraries fix. */
const USUAL: readonly RegExp[] = [
  /\bdead letters?\b/g,
  /\b(in place|takes? place|took place|decimal places?|place holders?)\b/g,
  /\b(look|looks|looked|looking) (up|like)\b/g,
  /\b(upper case|lower case|capital|small|ascii|latin|single|\w+ of the) letters?\b/g,
  /\bletters? (and|or) (digits?|numbers?)\b/g,
  /\bletters, digits\b/g,
  /questions\.ts/g,
];

/** Terms that an interface fixes: keys of Redis, members of the JSON of commands, a column, Bash, Node and CSS. */
const FIXED: readonly (readonly [RegExp, RegExp])[] = [
  [/\.(ts|md)$/, /:places\b/g],
  [/^services\/operator\/src\/(commands|identity|import|verify)\//, /\b(place|says|standing|fate)\b/g],
  [/26-portal-rejections\.sql$/, /\bas fate\b/g],
  [/^services\/operator\/src\/(app|commands\/reference\.test)\.ts$/, /\bcomp words\b/g],
  [/\.m?[jt]s$/, /\b(rl|lines)\.question\b/g],
  [/\.css$/, /\bletter spacing\b/g],
];

const READ = /\.(ts|js|mjs|sql|lua|md|sh|yml|css|html)$/;
const SKIPPED = /^(test\/docs\/questions\.ts|test\/house\/vocabulary\.ts|infra\/chain\/compiled\/)/;

/** A text with the words of its names apart and in lower case, line by line: `askNode` becomes `ask node`. */
const toWords = (line: string) =>
  line
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[_-]/g, ' ')
    .toLowerCase();

function findingsOf(path: string, line: string): string[] {
  const allowed = [...USUAL, ...FIXED.flatMap(([paths, term]) => (paths.test(path) ? [term] : []))];
  const text = allowed.reduce((rest, usual) => rest.replace(usual, ''), toWords(line));
  return BANNED.flatMap(([banned, instead]) =>
    [...text.matchAll(banned)].map(([word]) => `"${word}": write ${instead}`),
  );
}

function main(prefix: string): void {
  let findings = 0;
  for (const [path, text] of readTree(fileURLToPath(new URL('../..', import.meta.url)))) {
    if (!READ.test(path) || SKIPPED.test(path) || !path.startsWith(prefix)) continue;
    for (const [index, line] of text.split('\n').entries()) {
      for (const finding of findingsOf(path, line)) {
        findings += 1;
        console.error(`${path}:${index + 1}: ${finding}`);
      }
    }
  }
  if (findings > 0) {
    console.error(`${findings} words that this project does not use; see CONTRIBUTING.md.`);
    process.exitCode = 1;
  }
}

main(process.argv[2] ?? '');
