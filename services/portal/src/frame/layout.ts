/** The layout of every page, with header and navigation. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { VERSION } from '@playline/runtime';
import type { Visit } from './page.ts';

export interface LayoutOptions {
  readonly title: string;
  readonly content: HtmlValue;
  readonly scripts?: readonly string[];
  readonly message?: { readonly kind: 'done' | 'failed'; readonly text: string } | null;
}

interface NavLink {
  readonly text: string;
  readonly path: string;
}

export function toDocument(
  visit: Visit | null,
  { title, content, scripts = [], message = null }: LayoutOptions,
): string {
  const files = ['portal.js', ...scripts];
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} – Playline</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/portal.css">
${files.map((name) => html`<script type="module" src="/assets/${name}"></script>\n`)}</head>
<body>
<a class="skip" href="#content">Skip to content</a>
${toHeader(visit)}
<div class="frame">
${toSideNav(visit)}
<main id="content" tabindex="-1">
${message === null ? '' : html`<p class="message ${message.kind}" role="${message.kind === 'failed' ? 'alert' : 'status'}">${message.text}</p>`}
<h1>${title}</h1>
${content}
</main>
</div>
${visit?.account ? html`<footer>Playline ${VERSION}</footer>\n` : ''}</body>
</html>
`.text;
}

function toHeader(visit: Visit | null): Markup {
  const account = visit?.account ?? null;
  return html`<header class="top">
<a class="brand" href="/"><img src="/assets/icon.svg" alt="" width="22" height="22">Playline</a>
${visit === null ? '' : toScopeNav(visit)}
${
  visit === null || account === null
    ? ''
    : html`<nav class="who" aria-label="Account"><a href="/settings">${account.name}</a>${visit.form(
        'sign-out',
        html`<button class="plain">Sign out</button>`,
        { path: '/sign-out' },
      )}</nav>`
}
</header>`;
}

function toScopeNav({ project, environment, path }: Visit): HtmlValue {
  if (project === null) return '';
  const page = environment === null ? 'keys' : (path.split('/')[5] ?? 'keys');
  const links = project.environments.map(({ name, kind }) => {
    const current = name === environment?.name ? html` aria-current="true"` : '';
    return html`<a class="environment ${kind}" href="${environmentPath(project.id, name)}/${page}"${current}>${name}</a>`;
  });
  return html`<nav class="scope" aria-label="Project and environment"><a href="${projectPath(project.id)}">${project.name}</a>${links}</nav>`;
}

function toSideNav(visit: Visit | null): HtmlValue {
  if (visit === null || visit.account === null) return '';
  const groups = [
    { name: visit.environment?.name ?? '', links: toEnvironmentLinks(visit) },
    { name: visit.project?.name ?? '', links: toProjectLinks(visit) },
    { name: 'Instance', links: visit.account.isAdministrator ? ADMINISTRATOR_LINKS : ADMINISTRATOR_LINKS.slice(0, 1) },
  ].filter(({ links }) => links.length > 0);
  const toLink = ({ text, path }: NavLink) =>
    html`<li><a href="${path}"${path === visit.path ? html` aria-current="page"` : ''}>${text}</a></li>`;
  return html`<nav class="side" aria-label="Pages">${groups.map(
    ({ name, links }) => html`<h2>${name}</h2><ul>${links.map(toLink)}</ul>`,
  )}</nav>`;
}

function toEnvironmentLinks(visit: Visit): NavLink[] {
  const { project, environment } = visit;
  if (project === null || environment === null) return [];
  const base = environmentPath(project.id, environment.name);
  return ENVIRONMENT_PAGES.filter(({ action }) => visit.can(action)).map(({ text, name }) => ({
    text,
    path: `${base}/${name}`,
  }));
}

const ENVIRONMENT_PAGES = [
  { text: 'Keys', name: 'keys', action: 'keys.read' },
  { text: 'Live', name: 'live', action: 'live.read' },
  { text: 'Rejections', name: 'rejections', action: 'rejections.read' },
  { text: 'People', name: 'people', action: 'people.raw-ids' },
  { text: 'Erasures', name: 'erasures', action: 'erasures.read' },
  { text: 'Collections', name: 'collections', action: 'project.read' },
  { text: 'Mints', name: 'mints', action: 'project.read' },
  { text: 'Activities', name: 'activities', action: 'project.read' },
  { text: 'Signable keys', name: 'signable-keys', action: 'project.read' },
  { text: 'Limits', name: 'limits', action: 'project.read' },
] as const;

function toProjectLinks(visit: Visit): NavLink[] {
  if (visit.project === null) return [];
  const base = projectPath(visit.project.id);
  const links = [
    { text: 'Project', path: base },
    { text: 'Alerts', path: `${base}/alerts` },
    { text: 'Members', path: `${base}/members` },
  ];
  return visit.can('audit.read') ? [...links, { text: 'Audit', path: `${base}/audit` }] : links;
}

const ADMINISTRATOR_LINKS: readonly NavLink[] = [
  { text: 'Projects', path: '/' },
  { text: 'Accounts', path: '/instance/accounts' },
  { text: 'Rate limit keys', path: '/instance/rate-limit-keys' },
  { text: 'Audit', path: '/instance/audit' },
];

export const projectPath = (projectId: string): string => `/projects/${encodeURIComponent(projectId)}`;

export const environmentPath = (projectId: string, environment: string): string =>
  `${projectPath(projectId)}/environments/${encodeURIComponent(environment)}`;

export const pathInEnvironment = ({ project, environment }: Visit, page: string): string =>
  `${environmentPath(project?.id ?? '', environment?.name ?? '')}/${page}`;
