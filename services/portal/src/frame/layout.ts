/** The layout of every page: the sidebar, the title and the content. */
import type { Action, ProjectEnvironment, ProjectRecord } from '@playline/access-keys';
import { html, type Markup } from '@playline/api-docs';
import { VERSION } from '@playline/runtime';
import { type IconName, icon } from './icons.ts';
import type { ResponseOf, Visit } from './page.ts';

/** Shown above the content. */
export type Message = { readonly kind: 'done' | 'failed'; readonly text: string } | null;

const LOGO = html`<img src="/assets/icon.svg" alt="" width="22" height="22">Playline`;

export function toDocument(
  visit: Visit | null,
  { title, heading = title, content, actions = '', scripts = [] }: Omit<ResponseOf<'page'>, 'kind'>,
  message: Message = null,
): string {
  const files = ['portal.js', ...scripts];
  const side = visit === null || visit.account === null ? null : toSide(visit);
  const names = [title, visit?.environment?.name ?? '', visit?.project?.name ?? '', 'Playline'];
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${[...new Set(names)].filter((name) => name !== '').join(' · ')}</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/portal.css">
${files.map((name) => html`<script type="module" src="/assets/${name}"></script>\n`)}</head>
<body class="${side === null ? 'alone' : 'app'}">
<a class="skip" href="#content">Skip to content</a>
${side ?? html`<header class="bar"><a class="brand" href="/">${LOGO}</a></header>`}
<main id="content" class="page" tabindex="-1">
<div class="head"><h1>${heading}</h1><span class="grow"></span>${actions}</div>
${message === null ? '' : html`<p class="message ${message.kind}" role="${message.kind === 'failed' ? 'alert' : 'status'}">${message.text}</p>`}
${content}
</main>
</body>
</html>
`.text;
}

/** The project and environment of the page; on other pages, those that were opened last. */
interface Scope {
  readonly project: ProjectRecord | null;
  readonly environment: ProjectEnvironment | null;
}

function findScope({ project, environment, projects, opened }: Visit): Scope {
  const [lastId] = opened.keys();
  const shown = project ?? projects.find(({ id }) => id === lastId) ?? projects[0] ?? null;
  if (shown === null) return { project: null, environment: null };
  const last = shown.environments.find(({ name }) => name === opened.get(shown.id));
  return { project: shown, environment: environment ?? last ?? shown.environments[0] ?? null };
}

function toSide(visit: Visit): Markup {
  const { account } = visit;
  const scope = findScope(visit);
  const links = NAVIGATION.filter(([group]) => group !== 'Instance' || account?.isAdministrator === true);
  const groups = Object.entries(Object.groupBy(links, ([group]) => group));
  // Without JavaScript, a checkbox opens the sidebar on narrow screens.
  return html`<header class="bar"><input type="checkbox" id="menu" autocomplete="off" aria-label="Menu"><a class="brand" href="/">${LOGO}</a><span class="muted">${visit.environment?.name ?? ''}</span></header>
<label class="curtain" for="menu" aria-hidden="true"></label>
<nav class="side" aria-label="Pages">
<a class="brand" href="/">${LOGO}</a>
${toSwitch(visit, scope)}
<div class="pages">${groups.map(([name, links = []]) => html`<p class="group">${name}</p><ul>${links.map((link) => toNavLink(visit, scope, link))}</ul>\n`)}</div>
<div class="who"><a href="/settings">${icon('circle-user')}<span>${account?.name ?? ''}</span></a>${visit.form(
    'sign-out',
    html`<button class="plain" title="Sign out">${icon('log-out')}<span class="visually-hidden">Sign out</span></button>`,
    { path: '/sign-out', className: 'inline' },
  )}</div>
<p class="faint">Playline ${VERSION}. Times are in UTC.</p>
</nav>`;
}

/** Lists all projects with their environments. Within a project, the same page opens in the other environment. */
function toSwitch({ projects, path, environment: current }: Visit, { project, environment }: Scope): Markup {
  const page = (current === null ? undefined : path.split('/')[5]) ?? 'overview';
  const toItem = (each: ProjectRecord) =>
    html`<li><a class="project" href="${projectPath(each.id)}">${each.name}</a>${each.environments.map(
      ({ name, kind }) =>
        html`<a class="environment ${kind}" href="${environmentPath(each.id, name)}/${each === project ? page : 'overview'}"${each === project && name === environment?.name ? html` aria-current="true"` : ''}>${name}</a>`,
    )}</li>`;
  return html`<details class="switch"><summary><span><b>${project?.name ?? 'No project'}</b><small class="${environment?.kind ?? ''}">${environment?.name ?? 'Create or join a project'}</small></span>${icon('chevrons-up-down')}</summary>
<ul>${projects.map(toItem)}<li><a class="project" href="/">All projects</a></li></ul></details>`;
}

function toNavLink(visit: Visit, { project, environment }: Scope, [, text, name, pattern, action]: NavLink): Markup {
  const firing = (text === 'Alerts' && visit.firing.get(project?.id ?? '')) || 0;
  const badge =
    firing === 0 ? '' : html`<span class="tag bad">${firing}<span class="visually-hidden"> firing</span></span>`;
  const content = html`${icon(name)}${text}${badge}`;
  const names: Readonly<Record<string, string | undefined>> = { project: project?.id, environment: environment?.name };
  const path = pattern.replace(/:(\w+)/g, (_, key: string) => encodeURIComponent(names[key] ?? ''));
  const isKnown = !pattern.includes(':') || (project !== null && environment !== null);
  // A page that the role may not open keeps its position, so that the sidebar never changes its shape.
  if (!isKnown || (action !== null && !visit.can(action, project?.id)))
    return html`<li><a class="nav" role="link" aria-disabled="true">${content}</a></li>`;
  const isSubpage = pattern.startsWith(ENVIRONMENT) && visit.path.startsWith(`${path}/`);
  const current = visit.path === path || isSubpage ? html` aria-current="page"` : '';
  return html`<li><a class="nav" href="${path}"${current}>${content}</a></li>`;
}

/** `action` is the access that the page requires; null if any account may open it. */
type NavLink = readonly [group: string, text: string, icon: IconName, path: string, action: Action | null];

const PROJECT = '/projects/:project';
const ENVIRONMENT = `${PROJECT}/environments/:environment`;

export const NAVIGATION: readonly NavLink[] = [
  ['Events', 'Overview', 'layout-grid', `${ENVIRONMENT}/overview`, 'project.read'],
  ['Events', 'Live', 'activity', `${ENVIRONMENT}/live`, 'live.read'],
  ['Events', 'Explore', 'list', `${ENVIRONMENT}/explore`, 'live.read'],
  ['Events', 'Rejections', 'circle-alert', `${ENVIRONMENT}/rejections`, 'rejections.read'],
  ['Events', 'Alerts', 'bell', `${PROJECT}/alerts`, 'project.read'],
  ['People', 'Find a person', 'user-search', `${ENVIRONMENT}/people`, 'people.raw-ids'],
  ['People', 'Erasures', 'trash', `${ENVIRONMENT}/erasures`, 'erasures.read'],
  ['Chain', 'Collections', 'box', `${ENVIRONMENT}/collections`, 'project.read'],
  ['Chain', 'Mints', 'coins', `${ENVIRONMENT}/mints`, 'project.read'],
  ['Chain', 'Activity', 'scroll-text', `${ENVIRONMENT}/activities`, 'project.read'],
  ['Chain', 'Signable keys', 'file-key', `${ENVIRONMENT}/signable-keys`, 'project.read'],
  ['Set up', 'Keys', 'key-round', `${ENVIRONMENT}/keys`, 'keys.read'],
  ['Set up', 'Connect', 'plug', `${ENVIRONMENT}/connect`, 'analysts.create'],
  ['Set up', 'Analyst settings', 'chart-no-axes-combined', `${PROJECT}/analyst-settings`, 'project.read'],
  ['Set up', 'Demo data', 'database', `${ENVIRONMENT}/demo`, 'demo.load'],
  ['Set up', 'Limits', 'gauge', `${ENVIRONMENT}/limits`, 'project.read'],
  ['Set up', 'Members', 'users', `${PROJECT}/members`, 'members.read'],
  ['Set up', 'Audit', 'file-clock', `${PROJECT}/audit`, 'audit.read'],
  ['Set up', 'Project settings', 'settings', PROJECT, 'project.read'],
  ['Set up', 'Docs', 'book-open', '/docs', null],
  ['Instance', 'Projects', 'folder', '/', null],
  ['Instance', 'Accounts', 'circle-user', '/instance/accounts', 'accounts.read'],
  ['Instance', 'Rate limit keys', 'ticket', '/instance/rate-limit-keys', 'rate-limit-keys.read'],
  ['Instance', 'Instance audit', 'file-clock', '/instance/audit', 'accounts.read'],
];

export const projectPath = (projectId: string): string => `/projects/${encodeURIComponent(projectId)}`;

export const environmentPath = (projectId: string, environment: string): string =>
  `${projectPath(projectId)}/environments/${encodeURIComponent(environment)}`;

export const pathInEnvironment = ({ project, environment }: Visit, page: string): string =>
  `${environmentPath(project?.id ?? '', environment?.name ?? '')}/${page}`;
