import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CHECKOUT } from '@playline/infra/paths';
import { until } from '@playline/testkit';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Host } from './host.ts';
import { openBrowser, type PageGlobals } from './test/open-browser.ts';
import { type FolderSite, openFolder } from './test/open-folder.ts';
import { createGame, type Game } from './test/package.ts';

const DIST = '/node_modules/@playline/audience-client/dist';
const OPTIONS = "{ baseUrl: location.origin, publishableKey: 'pk_svcapik-1', surface: 'web', consent: 'full' }";

const SCRIPT_PAGE = `<!doctype html><title>By script tag</title>
  <script src="${DIST}/playline-audience.min.js"></script>
  <script src="${DIST}/playline-autocapture.min.js"></script>
  <script>
    globalThis.client = PlaylineAudience.openAudienceClient(${OPTIONS});
    PlaylineAutocapture.openAutocapture(client);
  </script>`;
const IMPORTS = {
  '@playline/audience-client': `${DIST}/index.js`,
  '@playline/audience-client/autocapture': `${DIST}/autocapture/index.js`,
};
const MODULE_PAGE = `<!doctype html><title>By import</title>
  <script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>
  <script type="module">
    import { openAudienceClient } from '@playline/audience-client';
    import { openAutocapture } from '@playline/audience-client/autocapture';
    globalThis.client = openAudienceClient(${OPTIONS});
    openAutocapture(client);
  </script>`;

let game: Game;
let site: FolderSite;
let browser: Browser;

beforeAll(async () => {
  [game, browser] = await Promise.all([createGame(), openBrowser()]);
  site = await openFolder(game.folder, { '/script': SCRIPT_PAGE, '/module': MODULE_PAGE });
});
afterAll(async () => {
  await Promise.all([site?.close(), browser?.close()]);
  game?.remove();
});

const read = (file: string) => readFileSync(join(game.installed, file), 'utf8');

it('the packed tarball installs offline into an empty project without any other package', () => {
  expect(readdirSync(join(game.folder, 'node_modules', '@playline'))).toEqual(['audience-client']);
  expect(readdirSync(join(game.folder, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['@playline']);
});

it('the packed tarball contains modules, types, scripts, source maps, README and licence only', () => {
  const unexpected = game
    .files()
    .filter((file) => !/^dist\/.*\.(js|js\.map|d\.ts)$|^(package\.json|README\.md|LICENSE)$/.test(file));
  expect(unexpected).toEqual([]);
  expect(game.files().filter((file) => /test/.test(file))).toEqual([]);
  for (const file of ['README.md', 'LICENSE', 'dist/index.d.ts', 'dist/autocapture/index.d.ts'])
    expect(game.files()).toContain(file);
});

it('the packed package.json has no dependencies, and all of its paths exist', () => {
  const manifest = JSON.parse(read('package.json'));
  for (const name of ['dependencies', 'devDependencies', 'publishConfig', 'private'])
    expect(manifest).not.toHaveProperty(name);
  // npm runs these two scripts when packing, never when installing.
  expect(Object.keys(manifest.scripts)).toEqual(['prepack', 'postpack']);
  const paths = JSON.stringify(manifest).match(/\.\/dist\/[\w./-]+/g) ?? [];
  expect(paths.length).toBeGreaterThan(6);
  expect(paths.filter((path) => !existsSync(join(game.installed, path)) && path !== './dist/')).toEqual([]);
});

it('every script in the packed tarball has a source map with embedded sources', () => {
  const scripts = game.files().filter((file) => file.endsWith('.js'));
  expect(scripts.length).toBeGreaterThan(10);
  for (const file of scripts) {
    const map = /\n\/\/# sourceMappingURL=(\S+)\s*$/.exec(read(file))?.[1] ?? `no map in ${file}`;
    const { sources, sourcesContent } = JSON.parse(read(join(dirname(file), map)));
    expect([file, sources.length]).toEqual([file, sourcesContent.length]);
    for (const source of sourcesContent) expect(source).toBeTypeOf('string');
  }
});

it('the packed tarball contains core and autocapture as separate scripts', () => {
  const core = read('dist/playline-audience.min.js');
  expect(core).not.toContain('session_started');
  expect(read('dist/index.js')).not.toContain('autocapture');
  expect(read('dist/playline-autocapture.min.js')).not.toContain('/v1/audience/messages');
});

it('npm pack leaves the source folder unchanged, even if an earlier pack was killed', () => {
  for (const name of ['package.json', 'README.md'])
    expect(readFileSync(join(game.source, name), 'utf8')).toBe(
      readFileSync(join(CHECKOUT, 'packages', 'audience-client', name), 'utf8'),
    );
  for (const name of ['LICENSE', '.package.json.kept']) expect(existsSync(join(game.source, name))).toBe(false);
});

it('the installed package runs in Node', async () => {
  game.write(
    'game.mjs',
    `import { openAudienceClient } from '@playline/audience-client';
       import { openAutocapture } from '@playline/audience-client/autocapture';
       const client = openAudienceClient({ baseUrl: '${site.url}', publishableKey: 'pk_svcapik-1', consent: 'full' });
       openAutocapture(client, { sessions: false });
       const id = client.track('match_started', { players: 8 });
       console.log(JSON.stringify({ id, unsent: await client.close() }));`,
  );
  const { id, unsent } = JSON.parse(await game.run('game.mjs'));
  expect(unsent).toBe(0);
  expect(site.messages.find(({ messageId }) => messageId === id)).toMatchObject({
    type: 'track',
    eventName: 'match_started',
    properties: { players: 8 },
  });
});

it('the installed package provides self-contained types that detect type errors', async () => {
  const tsc = join(CHECKOUT, 'node_modules', 'typescript', 'bin', 'tsc');
  const start = `import { openAudienceClient, type AudienceClient } from '@playline/audience-client';
      import { openAutocapture } from '@playline/audience-client/autocapture';
      const client: AudienceClient = openAudienceClient({ baseUrl: '', publishableKey: 'pk' });
      openAutocapture(client, { inactivityTimeoutMs: 1 }).touch();\n`;
  const flags = ['--noEmit', '--strict', '--target', 'es2022', '--lib', 'es2022,dom', '--skipLibCheck', 'false'];
  for (const kind of [
    ['--module', 'nodenext'],
    ['--module', 'esnext', '--moduleResolution', 'bundler'],
  ]) {
    game.write('right.mts', `${start}client.track('level_done', { level: 3 });`);
    game.write('wrong.mts', `${start}client.track(3);`);
    const found = await game.run(tsc, ...flags, ...kind, 'right.mts', 'wrong.mts').catch(String);
    expect(found.match(/^\S+\(\d.*error TS\d+/gm)).toEqual([expect.stringMatching(/^wrong\.mts.*TS2345$/)]);
  }
});

it.each(['script', 'module'])('the installed package runs in a browser, loaded by %s', async (kind) => {
  const page = await openPage(kind);
  const id = await call(page, ({ client }) => client.track('level_done', { level: 3 }));
  await call(page, ({ client }) => client.flush());
  const sent = await messagesOf(page);
  const tracked = sent.find(({ messageId }) => messageId === id);
  expect(sent.map(({ type, eventName }) => eventName ?? type)).toEqual(['session_started', 'page', 'level_done']);
  expect(tracked).toMatchObject({ properties: { level: 3 }, context: { pagePath: `/${kind}` } });
  expect(new Set(sent.map(({ sessionId }) => sessionId)).size).toBe(1);
  await page.context().close();
});

it('the installed package preserves user, properties and session across pages, and tracks navigation', async () => {
  const first = await openPage('script');
  await call(first, ({ client, history }) => {
    client.identify('u-1', { identityType: 'steam' });
    client.register({ build: '1.2' });
    history.pushState(null, '', '/script/shop');
    history.replaceState(null, '', '/script/shop?item=3');
  });
  await first.goBack();
  await first.waitForURL(`${site.url}/script`);
  await call(first, ({ client }) => client.flush());
  await first.goto(`${site.url}/module`);
  await first.waitForFunction('globalThis.client');
  await call(first, ({ client }) => client.flush());
  const sent = await messagesOf(first);
  const pages = sent.filter(({ type }) => type === 'page');
  expect(pages.map(({ context, properties }) => [context?.pagePath, properties?.navigation])).toEqual([
    ...[
      ['/script', 'load'],
      ['/script/shop', 'push'],
      ['/script', 'traverse'],
      ['/module', 'load'],
    ],
  ]);
  expect(pages.at(-1)).toMatchObject({ userId: 'u-1', identityType: 'steam', properties: { build: '1.2' } });
  expect(sent.filter(({ eventName }) => eventName === 'session_started').length).toBe(1);
  await first.context().close();
});

/** Opens a page in an empty browser profile. Any page error fails the test. */
async function openPage(name: string): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  page.on('pageerror', (error) => {
    throw error;
  });
  await page.goto(`${site.url}/${name}`);
  await page.waitForFunction('globalThis.client');
  return page;
}

/** Runs a function inside the page, where it can access only the page's globals. */
function call<T>(
  page: Page,
  action: (globals: PageGlobals & Required<Pick<Host, 'history'>>) => T,
): Promise<Awaited<T>> {
  return page.evaluate(`(${action})(globalThis)`) as Promise<Awaited<T>>;
}

/** Waits for this player's messages and returns them in the order in which they were created. */
async function messagesOf(page: Page) {
  const anonymousId = await call(page, ({ client }) => client.anonymousId);
  return until('the messages have arrived', () => {
    const sent = site.messages.filter((message) => message.anonymousId === anonymousId);
    return sent.length > 0 ? sent : null;
  });
}
