import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { createDocuments, createUnknownPage, type DocsSource } from './index.ts';
import { createLibrarySource } from './test/library.ts';

const source = createLibrarySource();
const documents = createDocuments(source);
const textOf = (path: string) => documents.get(path)?.text ?? '';
const pages = [...documents].filter(([, { type }]) => type.startsWith('text/html'));

interface Item {
  name: string;
  item?: Item[];
  request?: { method: string; url: { raw: string; path: string[]; query?: unknown[] }; body?: unknown };
}

it('the documents of an interface have a page for each code and article that the source names, and for no other', () => {
  expect(pages.map(([path]) => path).sort()).toEqual([
    '/docs',
    '/docs/errors',
    '/docs/errors/AUTHENTICATION_ERROR',
    '/docs/errors/RESOURCE_NOT_FOUND',
    '/docs/errors/TOO_MANY_REQUESTS_ERROR',
    '/docs/errors/VALIDATION_ERROR',
    '/docs/opening-hours',
    '/docs/reference',
  ]);
});

it('the documents of an interface lead to each article from every page and list, and give its files as they are', () => {
  for (const [path, { text }] of pages) expect(text, path).toMatch(/href="[./]*docs\/opening-hours"/);
  expect(textOf('/docs')).toContain('<dd>When the doors are open.</dd>');
  expect(textOf('/llms.txt')).toContain('- [Opening hours](https://library.test/docs/opening-hours): When the doors');
  const file = documents.get('/docs/opening-hours/weeks.txt');
  expect(file).toEqual({ type: 'text/plain; charset=utf-8', text: 'Monday to Friday\n' });
});

it('the documents of an interface describe a code as the source does, with the status and the message of the envelope', () => {
  const page = textOf('/docs/errors/RESOURCE_NOT_FOUND');
  expect(page).toContain('<strong class="status">404</strong> The resource does not exist.');
  expect(page).toContain('This library has no such shelf.');
  expect(page).toContain('Go to the <code>desk</code>.');
  expect(textOf('/llms.txt')).toContain('(404): This library has no such shelf. Go to the `desk`.');
});

it('the documents of an interface have no link that leads nowhere, on any page', () => {
  const unknown = { text: createUnknownPage(source, '/docs/x/y', [...documents.keys()]) };
  for (const [path, { text }] of [...pages, ['/docs/x/y', unknown] as const])
    for (const [, target = ''] of text.matchAll(/ (?:href|src)="([^"]*)"/g)) {
      const { pathname, hash } = new URL(target, `https://any.test${path}`);
      const led = pathname === path ? text : textOf(pathname);
      expect(led, `${path} to ${target}`).toMatch(/\S/);
      if (hash !== '') expect(led, target).toContain(`id="${hash.slice(1)}"`);
    }
});

it('the documents of an interface give no two elements of a page the same id', () => {
  for (const [path, { text }] of pages) {
    const ids = [...text.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
    expect(ids, path).toEqual([...new Set(ids)]);
  }
});

it('the documents of an interface mention codes of parts only if the source has such codes', () => {
  const withParts: DocsSource = {
    ...source,
    partCodes: {
      folder: 'leaves',
      entries: { TORN: { cause: 'The leaf is torn.', fix: 'Bind it.' } },
      occursIn: (code, { body }) => JSON.stringify(body).includes(code),
      texts: {
        navigation: 'Leaves',
        heading: 'Codes of leaves',
        textHeading: 'Leaf codes',
        introSuffix: ', and so has a leaf',
        index: 'One leaf.',
        lead: 'A leaf was refused.',
        resend: 'No.',
      },
    },
  };
  const more = createDocuments(withParts);
  expect([...more.keys()].filter((path) => !documents.has(path))).toEqual(['/docs/leaves/TORN']);
  expect(more.get('/docs/errors')?.text).toContain('has a code, and so has a leaf.');
  expect(more.get('/llms.txt')?.text).toContain('## Leaf codes');
  expect([...documents.values()].map(({ text }) => text).join()).not.toMatch(/leaf|rejection/i);
});

const withKeys = (keys: DocsSource['keys']) => {
  const kinds = new Set(keys.map(({ kind }) => kind));
  const operations = source.operations.map((operation) => ({
    ...operation,
    keys: operation.keys.filter(({ kind }) => kinds.has(kind)),
  }));
  return createDocuments({ ...source, keys, operations });
};

it.each([
  [2, 'Set the two keys in the variables of the collection. Errors'],
  [1, 'Set the key in the variables of the collection. Errors'],
  [0, 'Errors'],
])('the list of variables to set is each of %i keys', (count, texts) => {
  const { info } = JSON.parse(withKeys(source.keys.slice(2 - count)).get('/collection.json')?.text ?? '{}');
  expect(info.description).toMatch(new RegExp(`^${texts}`));
});

it('the list of variables to set is empty when no example needs it', () => {
  const operations = source.operations.slice(0, 1);
  const page = createDocuments({ ...source, operations }).get('/docs/reference')?.text;
  expect(page).not.toContain('shell variable');
});

it('the bounds of a parameter are on the page and in the text', () => {
  const facts = [
    '<code>from</code> <span class="quiet">query, optional, date-time</span>',
    '<code>kind</code> <span class="quiet">query, optional, one of lent, returned, renewed</span>',
    '<code>page_size</code> <span class="quiet">query, optional, integer from 1 to 200, 100 when absent</span>',
    '<code>shelf</code> <span class="quiet">path, required</span>',
    '<code>x-long-term-key</code> <span class="quiet">header, optional</span>',
  ];
  for (const fact of facts) expect(textOf('/docs/reference')).toContain(fact);
  expect(textOf('/llms.txt')).toContain(
    '- `page_size` (query, optional, integer from 1 to 200, 100 when absent): How many at most.',
  );
});

it('the bounds of a parameter of an object without a name are described member by member, and those of several shapes one by one', () => {
  const page = textOf('/docs/reference');
  expect(page).toContain('<b>200</b> object of <code>result</code>: <a href="#schema-Book">Book</a>');
  const shapes =
    'object of <code>kind</code>: <code>lent</code>, <code>reader</code>: string or object of <code>kind</code>: one of';
  expect(page).toContain(`<h3 id="schema-LoanDetails">LoanDetails</h3>\n<p>${shapes}`);
});

it('a cursor of a command is read from a variable, in the middle of a quoted address', () => {
  const [, command = ''] = /### Newer loans\n\n```sh\n(.*?)\n```/s.exec(textOf('/llms.txt')) ?? [];
  const script = `curl() { printf '%s\\0' "$@"; }\n${command}`;
  const env = { NEXT_CURSOR: "a b'&c", LONG_TERM_KEY: 'key' };
  const { stdout, stderr } = spawnSync('sh', ['-c', script], { env, encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(stdout.split('\0').slice(0, -1)).toEqual([
    ...['-i', '-X', 'GET'],
    "https://library.test/v1/shelves/poetry/loans?kind=lent&page_cursor=a b'&c&page_size=2",
    ...['-H', 'x-long-term-key: key'],
  ]);
});

it('a cursor of a collection is one of its variables, as is a key', () => {
  const { variable, item } = JSON.parse(textOf('/collection.json')) as { variable: { key: string }[]; item: Item[] };
  expect(variable.map(({ key }) => key)).toEqual(['baseUrl', 'deskKey', 'longTermKey', 'nextCursor']);
  const next = item.flatMap((folder) => folder.item ?? []).find(({ name }) => name === 'Newer loans');
  expect(next?.request).not.toHaveProperty('body');
  expect(next?.request?.url).toMatchObject({
    raw: '{{baseUrl}}/v1/shelves/poetry/loans?kind=lent&page_cursor={{nextCursor}}&page_size=2',
    query: expect.arrayContaining([{ key: 'page_cursor', value: '{{nextCursor}}' }]),
  });
});

it('a cursor is among the variables that a reader must set', () => {
  const names = ['DESK_KEY', 'LONG_TERM_KEY', 'NEXT_CURSOR'].map((name) => `<code>${name}</code>`);
  expect(textOf('/docs/reference')).toContain(`shell variables ${names[0]}, ${names[1]} and ${names[2]}.`);
});
