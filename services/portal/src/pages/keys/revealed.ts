import type { KeyKind } from '@playline/access-keys';
import { html } from '@playline/api-docs';
import type { PortalSettings } from '../../config.ts';
import { copyable, copyableBlock, hidden } from '../../frame/components.ts';
import type { Answer, Visit } from '../../frame/page.ts';

/** The page after a key was created, the only one that shows a secret key. */
export function toRevealed(visit: Visit, kind: KeyKind, key: string, settings: PortalSettings): Answer {
  const isSecret = kind === 'secret';
  const variable = isSecret ? 'PLAYLINE_SECRET_KEY' : 'PLAYLINE_PUBLISHABLE_KEY';
  const once = isSecret
    ? html`<p><strong>Copy this key now. It is shown only once.</strong> Keep it on servers, never in a client.</p>`
    : html`<p>Add this key to your game clients. You can find it on the Keys page at any time.</p>`;
  const live = html`<p>Then watch it arrive: <a href="${visit.path.replace(/keys$/, 'live')}">Live</a> shows each message within two seconds.</p>`;
  return {
    kind: 'page',
    title: isSecret ? 'Secret key' : 'Publishable key',
    content: html`<div class="secret">${once}<p>${copyable(key, 'the key')}</p>
${visit.form('test', html`${hidden('key', key)}<button class="outline">Test the key</button>`, { className: 'inline' })}</div>
<h2>Line of an .env file</h2>
${copyableBlock(`${variable}=${key}`, 'the line')}
<h2>${isSecret ? 'Erase a person' : 'Send a first event'}</h2>
${copyableBlock(isSecret ? toErasure(key, settings) : toFirstEvent(key, settings), 'the command')}
${isSecret ? '' : live}
<p><a class="button" href="${visit.path}">Back to keys</a></p>`,
  };
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
