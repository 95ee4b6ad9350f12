/** The steps to the first message and beyond. The page updates itself until the first message is stored. */
import { findPublishableKey, roleIn } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { copyableBlock, docsLink, panel, status } from '../../frame/components.ts';
import { pathInEnvironment, projectPath } from '../../frame/layout.ts';
import type { PageResponse, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import type { Overview, OverviewSearch } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';
import { toEventCommand } from '../keys/new-key.ts';

const HOUR_S = 3_600;

/** Whether no message was stored, or the first one was stored within the last hours and is not counted yet. */
export const isWaiting = ({ firstS, clients }: Overview, { untilS }: Pick<OverviewSearch, 'untilS'>): boolean =>
  firstS === null || (clients.length === 0 && untilS - firstS < 2 * HOUR_S);

export async function toChecklist(
  { keys, accounts, settings }: Pick<PageParts, 'keys' | 'accounts' | 'settings'>,
  visit: Visit,
  { firstS }: Overview,
): Promise<PageResponse> {
  const { project, environment } = scopeOf(visit);
  const key = findPublishableKey(await keys.all(), environment.id);
  const others = (await accounts.all()).filter(({ id }) => id !== visit.account?.id);
  const hasTeam = others.some((account) => roleIn(account, project.id) !== null);
  const page = (name: string, text: string) => html`<a href="${pathInEnvironment(visit, name)}">${text}</a>`;
  const command =
    key === null
      ? html`<p>With a key, the command appears here.</p>`
      : copyableBlock(toEventCommand(key, settings), 'the command');
  const first =
    firstS === null
      ? html`This step turns green when the first message is stored. A rejected message appears on ${page('live', 'Live')} with the rule that it breaks.`
      : html`The first message is stored. ${page('live', 'Show it on Live')}. Numbers appear here after the current minute. Test messages are not counted.`;
  const invite = visit.can('members.read')
    ? html`<a href="${projectPath(project.id)}/members">Invite members</a>`
    : 'A project owner can invite your team.';
  const steps = html`<ol class="steps" data-refresh>
${toStep('Create a publishable key', key !== null, html`<p>Game clients send messages with this key. ${page('keys', key === null ? 'Create a key' : 'Show the keys')}</p>`)}
${toStep('Send a message', firstS !== null, html`${command}<p>${docsLink('/docs/quickstart', 'Quickstart for JavaScript, Unity, Unreal, Node and Python')}</p>`)}
${toStep('See the first message', firstS !== null, html`<p>${first}</p>`)}
${toStep('Invite your team', hasTeam, html`<p>${invite}</p>`)}
${toStep('Query your events', null, html`<p>${page('connect', 'Create analyst credentials')}, or read the ${docsLink(`/docs/cookbook?environment=${environment.id}`, 'cookbook')}.</p>`)}
</ol>`;
  const content = panel('First steps', steps, { note: `in ${environment.name}` });
  return { kind: 'page', title: 'Overview', content, scripts: ['overview.js'] };
}

/** @param isDone null if the page does not know */
const toStep = (title: string, isDone: boolean | null, content: HtmlValue): HtmlValue =>
  html`<li><h3>${title} ${isDone === null ? '' : status(isDone ? 'ok' : 'wait', isDone ? 'done' : 'open')}</h3>${content}</li>`;
