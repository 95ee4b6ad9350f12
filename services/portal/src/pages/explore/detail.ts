/** The panel with one stored message in full. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { keyValues, number, shortened, status, tag, time } from '../../frame/components.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import { hrefWith } from '../../href.ts';
import type { MessageDetail, PortalReads } from '../../reads/index.ts';
import { shouldMaskIds } from '../live/events.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const NO_OWNER = '0'.repeat(32);

export async function toDetail(reads: Pick<PortalReads, 'message'>, visit: Visit, id: string): Promise<Markup> {
  const messageId = id.toLowerCase();
  const close = html`<a class="close" href="${hrefWith(visit, { message: '' })}">Close</a>`;
  const toDrawer = (content: HtmlValue) =>
    html`<aside class="panel drawer" aria-label="Message" id="message">${close}${content}</aside>`;
  if (!UUID.test(messageId)) return toDrawer(html`<p role="alert">Enter a message id. It must be a UUID.</p>`);
  const idAccess = shouldMaskIds(visit) ? 'masked ids' : 'raw ids';
  const { project, environment } = scopeOf(visit);
  const search = {
    environmentId: environment.id,
    messageId,
    idAccess,
    safeProperties: project.safeProperties,
  } as const;
  const found = await reads.message(search, { signal: visit.signal });
  if (found.length === 0)
    return toDrawer(
      html`<p>No stored message has this id. Messages appear here within two seconds. To see why a message is missing, search its trace id on <a href="${pathInEnvironment(visit, 'rejections')}">Rejections</a>.</p>`,
    );
  return toDrawer(found.map((each) => toMessage(visit, each)));
}

function toMessage(visit: Visit, detail: MessageDetail): Markup {
  const { identityId, receivedMs, happenedMs, messageId, traceId } = detail;
  const isMasked = shouldMaskIds(visit);
  const rows: [string, HtmlValue][] = [
    ['Happened', time(happenedMs)],
    ['Received', html`${toDelay(receivedMs - happenedMs)} <span class="muted">${time(receivedMs)}</span>`],
    ['Player', [detail.userId, detail.anonymousId].filter((id) => id !== '').join(' · ')],
    ['Identity type', detail.identityType],
    ['Linked ids', [detail.fromId, detail.toId].filter((id) => id !== '').join(' → ')],
    ['Client', `${detail.library} ${detail.libraryVersion}`.trim()],
    ...Object.entries({ Consent: detail.consentLevel, Session: detail.sessionId, Device: detail.deviceId }),
    ...Object.entries({ Page: detail.pageUrl, 'Page title': detail.pageTitle, Referrer: detail.pageReferrer }),
    ['Locale', [detail.locale, detail.timezone, detail.screen].filter((text) => text !== '').join(' · ')],
    ['User agent', detail.userAgent],
    ['Message id', shortened(messageId, 'the message id')],
    ['Trace id', traceId === '' ? '' : shortened(traceId, 'the trace id')],
  ];
  return html`<div class="head"><h2>${detail.name || detail.type}</h2>${tag(detail.surface)}${detail.isTest ? tag('test') : ''}<span class="grow"></span>${status('ok', 'stored')}</div>
${keyValues(rows.filter(([, value]) => value !== ''))}
${toJsonBlock('Properties', detail.properties === '{}' ? '' : detail.properties)}${toJsonBlock('Traits', detail.traits)}
${isMasked ? html`<p class="hint">With your role, ids are shortened to two characters. Pages and properties are hidden, except properties that the project declares safe.</p>` : ''}
${isMasked || identityId === NO_OWNER ? '' : toPersonActions(visit, identityId)}`;
}

const toPersonActions = (visit: Visit, identityId: string) => html`<div class="actions">
<a class="btn" href="${pathInEnvironment(visit, 'people')}?person=${identityId}">Open person</a>
<a class="btn" href="${pathInEnvironment(visit, 'explore')}?identity=${identityId}">Player’s events</a></div>`;

const toDelay = (ms: number): string =>
  Math.abs(ms) < 1000
    ? `${ms < 0 ? '−' : '+'}${Math.abs(ms)} ms`
    : `${ms < 0 ? '−' : '+'}${number(Math.abs(ms) / 1000, 's')}`;

/** The script indents the JSON. */
function toJsonBlock(title: string, json: string): HtmlValue {
  if (json === '') return '';
  return html`<h3>${title}</h3><pre tabindex="0" class="json">${json}</pre>`;
}
