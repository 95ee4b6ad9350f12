import type { KeyKind } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { copyable, copyableBlock, hidden } from '../../frame/components.ts';
import type { Answer, Visit } from '../../frame/page.ts';
import type { PortalSettings } from '../../portal-parts.ts';

export interface Revealed {
  readonly visit: Visit;
  readonly kind: KeyKind;
  /** The key's text, which this answer shows and nothing else ever does, when it is secret. */
  readonly key: string;
  readonly settings: PortalSettings;
}

/** The page behind the making of a key: the only one that shows a secret, as the answer to the one form that made it. */
export function toRevealed({ visit, kind, key, settings }: Revealed): Answer {
  const variable = kind === 'secret' ? 'PLAYLINE_SECRET_KEY' : 'PLAYLINE_PUBLISHABLE_KEY';
  const once =
    kind === 'secret'
      ? html`<p><strong>Copy it now: it is shown this once.</strong> Keep it on servers, never in a client.</p>`
      : html`<p>Build it into your game clients. It is shown on the page of keys whenever you need it.</p>`;
  return {
    kind: 'page',
    title: kind === 'secret' ? 'The secret key' : 'The publishable key',
    content: html`<div class="secret">${once}<p>${copyable(key, 'the key')}</p>
${visit.form('test', html`${hidden('key', key)}<button class="outline">Test the key</button>`, { className: 'inline' })}</div>
<h2>As a line of an .env file</h2>
${copyableBlock(`${variable}=${key}`, 'the line')}
<h2>${kind === 'secret' ? 'Erase a person with it' : 'Send a first event with it'}</h2>
${copyableBlock(kind === 'secret' ? toErasure(key, settings) : toFirstEvent(key, settings), 'the command')}
${kind === 'secret' ? '' : next(visit)}
<p><a class="button" href="${visit.path}">Back to the keys</a></p>`,
  };
}

function next({ path }: Visit): HtmlValue {
  return html`<p>Then see it arrive: <a href="${path.replace(/keys$/, 'live')}">Live</a> shows each message within two seconds of its answer.</p>`;
}

/** A command that sends one event; the shell makes its id and time. */
export function toFirstEvent(key: string, { gatewayUrl, headerPrefix }: PortalSettings): string {
  return `curl -sS '${gatewayUrl}/v1/audience/messages' \\
  -H 'content-type: application/json' \\
  -H '${headerPrefix}-publishable-key: ${key}' \\
  -d '{"messages":[{"type":"track","messageId":"'$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)'","eventTimestamp":"'$(date -u +%Y-%m-%dT%H:%M:%SZ)'","anonymousId":"player-1","eventName":"level_started","properties":{"level":3}}]}'`;
}

function toErasure(key: string, { gatewayUrl, headerPrefix }: PortalSettings): string {
  return `curl -sS -i -X DELETE '${gatewayUrl}/v1/audience/data?anonymousId=player-1' \\
  -H '${headerPrefix}-api-key: ${key}'`;
}
