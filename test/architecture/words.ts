import { calleeName, isNode, nodesIn } from './syntax.ts';
import type { Node, Rule, SourceFile } from './tree.ts';

/** Pages that a reader of the repository does not have. */
export const ABSENT_PAGES =
  /\b(decided[ ]points?|design[ ]page|specification[ ]\d|specification[,:]?[ ](parts?|tables?|rows?|query|")|part[ ][A-H],?[ ](row\b|"))/i;

/** Forbidden text. Written so that this file does not contain it. */
const FORBIDDEN: { pattern: RegExp; mend: string }[] = [
  {
    pattern:
      /\b(registry\.npmjs\.|registry\.yarnpkg\.|repo1?\.maven\.|repo\.maven\.|pypi\.|proxy\.golang\.|index\.crates\.|deb\.debian\.)[a-z]+/,
    mend: 'registries are a setting of the machine (.npmrc, settings.xml of its user), never of the project',
  },
  {
    pattern: /(?<![\w.}/-])\/(work|root|home|Users|tmp\/dev)\/[\w.-]+/,
    mend: 'name paths from the top of the repository, or ask the system for a temporary folder',
  },
  { pattern: /\b(TO[D]O|FIX[M]E|X[X]X)\b/, mend: 'do it now, or leave it out and write down the decision' },
  {
    pattern: ABSENT_PAGES,
    mend: 'say the rule, or name a heading or row of packages/contracts/README.md: other pages are not known here',
  },
  { pattern: /@ts-(ignore|nocheck|expect-error)\b/, mend: 'say the type; parse what is unknown' },
];
/** Files that tools write or that are copied word for word. */
const FOREIGN = new Set(['package-lock.json', 'LICENSE']);

/** Committed text is only about the project, without notes about unfinished work. */
export const checkWords: Rule = ({ tree }) =>
  [...tree].flatMap(([path, text]) => {
    if (FOREIGN.has(path)) return [];
    return text.split('\n').flatMap((line, index) =>
      FORBIDDEN.flatMap(({ pattern, mend }) => {
        const word = pattern.exec(line)?.[0];
        return word === undefined ? [] : [{ rule: 'words', path, found: `line ${index + 1} says ${word}`, mend }];
      }),
    );
  });

/** The lock file names no registry, because it must install from the one that the machine uses. */
export const checkLock: Rule = ({ tree }) => {
  const lines = (tree.get('package-lock.json') ?? '').split('\n').filter((line) => /"resolved": "https?:/.test(line));
  if (lines.length === 0) return [];
  const mend = 'lock with omit-lockfile-registry-resolved=true, as .npmrc says';
  return [{ rule: 'lock file', path: 'package-lock.json', found: `names a registry on ${lines.length} lines`, mend }];
};

/** A title with fewer words is only a name and states no guarantee. */
const TITLE_WORDS_MIN = 3;
/** Fewer words are enough where a table completes the sentence. */
const TABLE_TITLE_WORDS_MIN = 2;

/** Every test file has tests. Each title states a guarantee, and no test is skipped or run alone. */
export const checkTests: Rule = ({ files }) =>
  files
    .filter(({ path }) => /\.test\.ts$/.test(path))
    .flatMap((file) => {
      const calls = file.nodes.filter(
        (node) => node.type === 'CallExpression' && ['it', 'test'].includes(calleeName(node)),
      );
      const named = calls.filter((call) => !isTable(call));
      const breach = (found: string, mend: string) => ({ rule: 'tests', path: file.path, found, mend });
      const suites = file.imports.some(({ target }) => /(^|\/)test\//.test(target ?? ''));
      return [
        ...(named.length === 0 && !suites ? [breach('holds no test', 'write one or remove the file')] : []),
        ...named.flatMap((call) => {
          const title = titleOf(call, file);
          const words = title.trim().split(/\s+/).length;
          return words < (/[%$]/.test(title) ? TABLE_TITLE_WORDS_MIN : TITLE_WORDS_MIN)
            ? [
                breach(
                  `title "${title}"`,
                  'write the guarantee as a sentence: "commits no offset before the insert is acknowledged"',
                ),
              ]
            : [];
        }),
        ...leftOut(file).map((found) =>
          breach(found, 'a test runs always, or it goes: fail with what to install when its store is missing'),
        ),
      ];
    });

/** True for the inner call of `it.each(table)(title)`, which does not have the title. */
function isTable(call: Node): boolean {
  const { callee } = call;
  return (
    isNode(callee) &&
    callee.type === 'MemberExpression' &&
    isNode(callee.property) &&
    ['each', 'for'].includes(String(callee.property.name))
  );
}

function titleOf(call: Node, file: SourceFile): string {
  const [title] = nodesIn(call.arguments);
  if (title === undefined) return '';
  return file.text.slice(title.start, title.end).replace(/^['"`]|['"`]$/g, '');
}

function leftOut(file: SourceFile): string[] {
  return file.nodes.flatMap((node) => {
    if (node.type !== 'MemberExpression' || !isNode(node.object) || !isNode(node.property)) return [];
    const text = file.text.slice(node.start, node.end);
    return /^(describe|it|test)\.(skip|only|todo|skipIf|runIf|fails)$/.test(text) ? [`uses ${text}`] : [];
  });
}

const HOOKS = new Set(['beforeEach', 'afterEach', 'aroundEach', 'beforeAll', 'afterAll', 'aroundAll']);

/** A module that several files of tests load has no hooks of its own. */
export const checkHooks: Rule = ({ files }) =>
  files
    .filter(({ path }) => !/\.test\.ts$/.test(path))
    .flatMap(({ path, nodes }) => {
      const statements = nodesIn(nodes.find(({ type }) => type === 'Program')?.body);
      const calls = statements.map(({ expression }) => expression).filter(isNode);
      const hooks = calls.filter((call) => call.type === 'CallExpression' && HOOKS.has(calleeName(call)));
      const mend = 'files of a shared process load it once, and only the first gets the hook: use onTestFinished';
      return hooks.map((hook) => ({ rule: 'tests', path, found: `calls ${calleeName(hook)} when it is loaded`, mend }));
    });
