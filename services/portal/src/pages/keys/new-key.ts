import type { KeyKind } from '@playline/access-keys';
import { html } from '@playline/api-docs';
import type { PortalSettings } from '../../config.ts';
import { copyable, copyableBlock, hidden, time } from '../../frame/components.ts';
import type { PageResponse, Visit } from '../../frame/page.ts';

/** `oldEndsAt`: when the replaced key stops; null if it has stopped, or if no key was replaced. */
type ShownKey = Readonly<{ kind: KeyKind; key: string; oldEndsAt: number | null }>;

/** The page shown after a key is created. No other page shows a secret key. */
export function toNewKeyPage(visit: Visit, { kind, key, oldEndsAt }: ShownKey, settings: PortalSettings): PageResponse {
  const stops = oldEndsAt === null ? '' : html` The old key stops on ${time(oldEndsAt)}.`;
  const isSecret = kind === 'secret';
  const variable = isSecret ? 'PLAYLINE_SECRET_KEY' : 'PLAYLINE_PUBLISHABLE_KEY';
  const instructions = isSecret
    ? html`<p><strong>Copy this key now. It is shown only once.</strong> Store it on your servers, never in a game client.</p>`
    : html`<p>Add this key to your game clients. You can always find it on the Keys page.${stops}</p>`;
  const nextStep = html`<p>The event appears on <a href="${visit.path.replace(/keys$/, 'live')}">Live</a> within two seconds.</p>`;
  return {
    kind: 'page',
    title: isSecret ? 'Secret key' : 'Publishable key',
    content: html`<div class="secret">${instructions}<p>${copyable(key, 'the key')}</p>
${visit.form('test', html`${hidden('key', key)}<button class="outline">Test the key</button>`, { className: 'inline' })}</div>
<h2>Add it to your .env file</h2>
${copyableBlock(`${variable}=${key}`, 'the line')}
<h2>${isSecret ? 'Erase a person' : 'Send your first event'}</h2>
${copyableBlock(isSecret ? toErasureCommand(key, settings) : toEventCommand(key, settings), 'the command')}
${isSecret ? '' : nextStep}
<p><a class="button" href="${visit.path}">Back to keys</a></p>`,
  };
}

/** Returns a command that sends one event. The shell generates the message id and the timestamp. */
export function toEventCommand(key: string, { gatewayUrl, headerPrefix }: PortalSettings): string {
  return `curl -sS '${gatewayUrl}/v1/audience/messages' \\
  -H 'content-type: application/json' \\
  -H '${headerPrefix}-publishable-key: ${key}' \\
  -d '{"messages":[{"type":"track","messageId":"'$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)'","eventTimestamp":"'$(date -u +%Y-%m-%dT%H:%M:%SZ)'","anonymousId":"player-1","eventName":"level_started","properties":{"level":3}}]}'`;
}

function toErasureCommand(key: string, { gatewayUrl, headerPrefix }: PortalSettings): string {
  return `curl -sS -i -X DELETE '${gatewayUrl}/v1/audience/data?anonymousId=player-1' \\
  -H '${headerPrefix}-api-key: ${key}'`;
}
