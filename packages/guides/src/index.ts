import { readdirSync, readFileSync } from 'node:fs';
import { type HrefOf, toHtml } from './markdown.ts';

export { escapeText } from './markdown.ts';

/** Sections of the documentation, in the order of the navigation, with their introductions on the home page. */
export const AREAS = [
  { area: 'Events', about: 'Send messages from games and servers, store consent, and erase a person.' },
  { area: 'Chain', about: 'Read tokens, replicate the activity history of a chain, and mint assets.' },
  { area: 'Analysts', about: 'Connect to ClickHouse, and query events by person.' },
  { area: 'Operate', about: 'Run the services, read their state, and fix problems.' },
  { area: 'SDKs', about: 'The client library for browsers and Node, served by this site.' },
] as const;
export type Area = (typeof AREAS)[number]['area'];

/** The guides, which every service serves, in the order of the navigation. The texts are `content/<name>.md`. */
const GUIDES = [
  ['quickstart', 'Events'],
  ['identity', 'Events'],
  ['consent', 'Events'],
  ['retries', 'Events'],
  ['deduplication', 'Events'],
  ['erasure', 'Events'],
  ['keys', 'Events'],
  ['analysts', 'Analysts'],
  ['operate', 'Operate'],
  ['sdks', 'SDKs'],
] as const satisfies readonly (readonly [string, Area])[];

/** Files in `infra` that are generated from the code. */
const OPERATOR_PAGES = [
  ['settings', 'SETTINGS.md', 'Every setting with its default, unit and services.'],
  ['metrics', 'METRICS.md', 'Every metric with its type, labels and source.'],
] as const;

/** The pages that only the service of an API serves. */
const API_PAGES: Readonly<Record<keyof SiteUrls, readonly (readonly [Area, string, string])[]>> = {
  events: [
    ['Events', 'Messages', 'docs/messages'],
    ['Events', 'Limits', 'docs/limits'],
    ['Events', 'Events reference', 'docs/reference'],
    ['Events', 'Events error codes', 'docs/errors'],
    ['Analysts', 'Cookbook', 'docs/cookbook'],
  ],
  chain: [
    ['Chain', 'Read your first token', 'docs#first-token'],
    ['Chain', 'Chain reference', 'docs/reference'],
    ['Chain', 'Chain error codes', 'docs/errors'],
  ],
};

interface SiteUrls {
  readonly events: string | null;
  readonly chain: string | null;
}

export interface SiteOptions {
  /** The API of this service. */
  readonly own: keyof SiteUrls;
  /** Public URLs of the services; null for a service that the deployment does not have. */
  readonly urls: SiteUrls;
  readonly headerPrefix: string;
}

export interface Guide {
  /** Path segment below `/docs/`. */
  readonly name: string;
  readonly area: Area;
  readonly title: string;
  readonly summary: string;
  /** HTML. */
  readonly content: string;
  readonly files: readonly [];
}

/** A page of the same site that the other service serves. */
export interface PageElsewhere {
  readonly area: Area;
  readonly title: string;
  /** Absolute URL. */
  readonly href: string;
}

export interface Site {
  /** Null if the deployment has no other service. */
  readonly elsewhere: { readonly url: string; readonly pages: readonly PageElsewhere[] } | null;
  readonly guides: readonly Guide[];
}

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');

const SCHEMA_FOLDER = '../../../infra/clickhouse/schema/';
const VIEW =
  /^CREATE VIEW IF NOT EXISTS ((?:analysis_|events_|person|sessions|\w+_catalogue)\w*)[\s\S]*COMMENT '([^']*)'$/;

/** Lists the views for analysts with the comments in the schema. */
function createViewTable(): string {
  const files = readdirSync(new URL(SCHEMA_FOLDER, import.meta.url)).filter((name) => name.endsWith('.sql'));
  const rows = files
    .sort()
    .flatMap((name) =>
      read(SCHEMA_FOLDER + name)
        .replaceAll(/^--.*\n/gm, '')
        .split(/;\s*/),
    )
    .flatMap((statement) => {
      const [, view, comment = ''] = VIEW.exec(statement.trim()) ?? [];
      return view === undefined ? [] : [`| \`${view}\` | ${comment} |`];
    });
  return ['| View | Contents |', '|---|---|', ...rows].join('\n');
}

/** Returns the parts of the documentation that all services share. The guides need the URL of the gateway. */
export function createSite({ own, urls, headerPrefix }: SiteOptions): Site {
  const other = own === 'events' ? 'chain' : 'events';
  const url = urls[other];
  const pages = API_PAGES[other].map(([area, title, path]): PageElsewhere => ({ area, title, href: `${url}/${path}` }));
  const elsewhere = url === null ? null : { url, pages };
  if (urls.events === null) return { elsewhere, guides: [] };
  const values: Readonly<Record<string, string>> = {
    gatewayUrl: urls.events,
    publishableHeader: `${headerPrefix}-publishable-key`,
    secretHeader: `${headerPrefix}-api-key`,
    headerPrefix,
    runbook: read('../../../infra/RUNBOOK.md').split('\n\n').slice(1).join('\n\n'),
    views: createViewTable(),
  };
  /** Links to pages of an API name it: `events:limits`. Links to files of the repository become text. */
  const hrefOf: HrefOf = (target) => {
    const [, api, page = target] = /^(events|chain):(.*)$/.exec(target) ?? [];
    if (page.includes('.md')) return null;
    if (api === undefined || api === own) return page;
    return url === null ? null : `${url}/docs/${page}`;
  };
  const toArticle = (name: string, area: Area, { text, about }: { text: string; about?: string }): Guide => {
    const filled = text.replaceAll(/\{\{(\w+)\}\}/g, (match, value: string) => values[value] ?? match);
    const [title = '', ...blocks] = filled.split('\n\n');
    const summary = about ?? blocks.shift() ?? '';
    return {
      name,
      area,
      title: title.slice(2),
      summary,
      content: toHtml(blocks.join('\n\n'), hrefOf),
      files: [],
    };
  };
  const guides = GUIDES.map(([name, area]) => toArticle(name, area, { text: read(`../content/${name}.md`) }));
  const generated = OPERATOR_PAGES.map(([name, file, about]) =>
    toArticle(name, 'Operate', { text: read(`../../../infra/${file}`), about }),
  );
  return { elsewhere, guides: [...guides, ...generated] };
}
