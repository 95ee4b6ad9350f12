import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { createDocuments, createNotFoundPage } from './index.ts';
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

it('the documentation has exactly one page for each error code and article in the source', () => {
  expect(pages.map(([path]) => path).sort()).toEqual([
    '/docs',
    '/docs/errors',
    '/docs/errors/AUTHENTICATION_ERROR',
    '/docs/errors/RESOURCE_NOT_FOUND',
    '/docs/errors/TOO_MANY_REQUESTS_ERROR',
    '/docs/errors/VALIDATION_ERROR',
    '/docs/opening-hours',
    '/docs/pages',
    '/docs/reference',
  ]);
});

it('every page and llms.txt link to each article, and the files of articles are served unchanged', () => {
  for (const [path, { text }] of pages) expect(text, path).toMatch(/href="[./]*docs\/opening-hours"/);
  expect(textOf('/docs/opening-hours')).toContain('<p class="lead">When the library is open.</p>');
  expect(textOf('/llms.txt')).toContain('- [Opening hours](https://library.test/docs/opening-hours): When the library');
  const file = documents.get('/docs/opening-hours/weeks.txt');
  expect(file).toEqual({ type: 'text/plain; charset=utf-8', text: 'Monday to Friday\n' });
});

it('an error page shows the cause and fix from the source, and the status and message from the catalogue', () => {
  const page = textOf('/docs/errors/RESOURCE_NOT_FOUND');
  expect(page).toContain('<strong class="status">404</strong> The resource does not exist.');
  expect(page).toContain('This library has no such shelf.');
  expect(page).toContain('Go to the <code>desk</code>.');
  expect(textOf('/llms.txt')).toContain('(404): This library has no such shelf. Go to the `desk`.');
});

it('no page has a broken link', () => {
  const notFound = { text: createNotFoundPage(source, '/docs/x/y', [...documents.keys()]) };
  for (const [path, { text }] of [...pages, ['/docs/x/y', notFound] as const])
    for (const [, target = ''] of text.matchAll(/ (?:href|src)="([^"]*)"/g)) {
      const { pathname, hash } = new URL(target, `https://any.test${path}`);
      const linked = pathname === path ? text : textOf(pathname);
      expect(linked, `${path} to ${target}`).toMatch(/\S/);
      if (hash !== '') expect(linked, target).toContain(`id="${hash.slice(1)}"`);
    }
});

it('element ids are unique on each page', () => {
  for (const [path, { text }] of pages) {
    const ids = [...text.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
    expect(ids, path).toEqual([...new Set(ids)]);
  }
});

it('the documentation mentions rejections only if the source defines rejection codes', () => {
  const rejections = { TORN: { cause: 'The leaf is torn.', fix: 'Bind it.' } };
  const withRejections = createDocuments({ ...source, rejections });
  expect([...withRejections.keys()].filter((path) => !documents.has(path))).toEqual(['/docs/rejections/TORN']);
  expect(withRejections.get('/docs/errors')?.text).toContain('has a code, as does every rejected message in a batch.');
  expect(withRejections.get('/llms.txt')?.text).toContain('## Rejection codes');
  expect([...documents.values()].map(({ text }) => text).join()).not.toMatch(/leaf|rejection/i);
});

it('the reference does not mention shell variables if no example uses a shell variable', () => {
  const operations = source.operations.slice(0, 1);
  const page = createDocuments({ ...source, operations }).get('/docs/reference')?.text;
  expect(page).not.toContain('shell variable');
});

it('the reference and llms.txt show the constraints of each parameter', () => {
  const facts = [
    '<code>from</code> <span class="quiet">query, optional, date-time</span>',
    '<code>kind</code> <span class="quiet">query, optional, one of lent, returned, renewed</span>',
    '<code>page_size</code> <span class="quiet">query, optional, integer from 1 to 200, default 100</span>',
    '<code>shelf</code> <span class="quiet">path, required</span>',
    '<code>x-long-term-key</code> <span class="quiet">header, optional</span>',
  ];
  for (const fact of facts) expect(textOf('/docs/reference')).toContain(fact);
  expect(textOf('/llms.txt')).toContain(
    '- `page_size` (query, optional, integer from 1 to 200, default 100): Maximum number of loans per page.',
  );
});

it('the reference describes unnamed objects field by field, and unions variant by variant', () => {
  const page = textOf('/docs/reference');
  expect(page).toContain('<b>200</b> object of <code>result</code>: <a href="#schema-Book">Book</a>');
  const variants =
    'object of <code>kind</code>: <code>lent</code>, <code>reader</code>: string or object of <code>kind</code>: one of';
  expect(page).toContain(`<h3 id="schema-LoanDetails">LoanDetails</h3>\n<p>${variants}`);
});

it('a curl command reads the cursor from a shell variable in a quoted URL', () => {
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

it('the collection defines a variable for each key and for the cursor', () => {
  const { variable, item } = JSON.parse(textOf('/collection.json')) as { variable: { key: string }[]; item: Item[] };
  expect(variable.map(({ key }) => key)).toEqual(['baseUrl', 'deskKey', 'longTermKey', 'nextCursor']);
  const next = item.flatMap((folder) => folder.item ?? []).find(({ name }) => name === 'Newer loans');
  expect(next?.request).not.toHaveProperty('body');
  expect(next?.request?.url).toMatchObject({
    raw: '{{baseUrl}}/v1/shelves/poetry/loans?kind=lent&page_cursor={{nextCursor}}&page_size=2',
    query: expect.arrayContaining([{ key: 'page_cursor', value: '{{nextCursor}}' }]),
  });
});

it('the reference lists the shell variables for keys and cursors', () => {
  const names = ['DESK_KEY', 'LONG_TERM_KEY', 'NEXT_CURSOR'].map((name) => `<code>${name}</code>`);
  expect(textOf('/docs/reference')).toContain(`shell variables ${names[0]}, ${names[1]} and ${names[2]}.`);
});
