/** The steps to the first message and beyond. The page updates itself until the first message is stored. */
import { keysOfProject } from '@playline/access-keys';
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
  { keys, settings }: Pick<PageParts, 'keys' | 'settings'>,
  visit: Visit,
  { firstS }: Overview,
): Promise<PageResponse> {
  const { project, environment } = scopeOf(visit);
  const key = keysOfProject(await keys.all(), project.id).find(
    (each) => each.environmentId === environment.id && each.text !== null && each.revokedAt === null,
  );
  const page = (name: string, text: string) => html`<a href="${pathInEnvironment(visit, name)}">${text}</a>`;
  const steps: readonly Step[] = [
    {
      title: 'Create a publishable key',
      isDone: key !== undefined,
      content: html`<p>Game clients send messages with this key. ${page('keys', key === undefined ? 'Create a key' : 'Show the keys')}</p>`,
    },
    {
      title: 'Send a message',
      isDone: firstS !== null,
      content: html`${key?.text == null ? html`<p>With a key, the command appears here.</p>` : copyableBlock(toEventCommand(key.text, settings), 'the command')}
<p>${docsLink(settings, '/docs/quickstart', 'Quickstart for JavaScript, Unity, Unreal, Node and Python')}</p>`,
    },
    {
      title: 'See the first message',
      isDone: firstS !== null,
      content:
        firstS === null
          ? html`<p>This step turns green when the first message is stored. A rejected message appears on ${page('live', 'Live')} with the rule that it breaks.</p>`
          : html`<p>The first message is stored. ${page('live', 'Show it on Live')}. Numbers appear here after the current minute. Test messages are not counted.</p>`,
    },
    {
      title: 'Invite your team',
      isDone: false,
      content: html`<p>${visit.can('members.read') ? html`<a href="${projectPath(project.id)}/members">Invite members</a>` : 'A project owner can invite your team.'}</p>`,
    },
    {
      title: 'Query your events',
      isDone: false,
      content: html`<p>${page('connect', 'Create analyst credentials')}, or read the ${docsLink(settings, '/docs/cookbook', 'cookbook')}.</p>`,
    },
  ];
  return {
    kind: 'page',
    title: 'Overview',
    content: panel('First steps', html`<ol class="steps" data-refresh>${steps.map(toStep)}</ol>`, {
      note: `in ${environment.name}`,
    }),
    scripts: ['overview.js'],
  };
}

interface Step {
  readonly title: string;
  readonly isDone: boolean;
  readonly content: HtmlValue;
}

const toStep = ({ title, isDone, content }: Step): HtmlValue =>
  html`<li><h3>${title} ${status(isDone ? 'ok' : 'wait', isDone ? 'done' : 'open')}</h3>${content}</li>`;
