import { fileURLToPath } from 'node:url';
import { readTree } from './tree.ts';

// Fails the lint step if a banned term occurs: `node test/house/vocabulary.ts [path prefix]`. Identifiers are split
// into words (`askNode` is `ask` and `node`), in code, SQL, Lua and Markdown. Each entry lists the preferred terms.
// There is no list of exempt findings: rewrite the text, or add a pattern of ordinary use to `ALLOWED`.
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

/** Ordinary uses of banned terms: English expressions, and names defined by contracts or libraries. */
const ALLOWED: readonly RegExp[] = [
  /\bdead letters?\b/g,
  /\b(in place|takes? place|took place|decimal places?|place holders?)\b/g,
  /\b(look|looks|looked|looking) (up|like)\b/g,
  /\b(upper case|lower case|capital|small|ascii|latin|single|\w+ of the) letters?\b/g,
  /\bletters? (and|or) (digits?|numbers?)\b/g,
  /\bletters, digits\b/g,
  /questions\.ts/g,
];

/** Terms in interfaces: Redis keys, JSON members of commands, a column name, Bash, Node and CSS. */
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

/** Splits the identifiers of a line into lower-case words: `askNode` becomes `ask node`. */
const toWords = (line: string) =>
  line
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[_-]/g, ' ')
    .toLowerCase();

function findBannedTerms(path: string, line: string): string[] {
  const allowed = [...ALLOWED, ...FIXED.flatMap(([paths, term]) => (paths.test(path) ? [term] : []))];
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
      for (const finding of findBannedTerms(path, line)) {
        findings += 1;
        console.error(`${path}:${index + 1}: ${finding}`);
      }
    }
  }
  if (findings > 0) {
    console.error(`${findings} banned terms; see CONTRIBUTING.md.`);
    process.exitCode = 1;
  }
}

main(process.argv[2] ?? '');
