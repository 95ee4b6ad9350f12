import {
  type CreatedRateLimitKey,
  createRateLimitKey,
  isGoodAt,
  PARTNER_CHARACTERS_MAX,
  PLAN_MAX,
  PLAN_WINDOW_S,
  type Plan,
  type RateLimitKeyRecord,
  refreshRateLimitKey,
  revokeRateLimitKey,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import {
  copyable,
  copyableBlock,
  disclosure,
  emptyState,
  field,
  hidden,
  number,
  table,
  time,
} from '../../frame/components.ts';
import type { Answer, FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import type { PagesParts } from '../index.ts';

type Parts = Pick<PagesParts, 'rateLimitKeys' | 'settings' | 'writeAudit'>;

const PATH = '/instance/rate-limit-keys';

/** Keys of partners for the chain API, with the plan of each. They belong to no project. */
export function createRateLimitKeysPage(parts: Parts): PortalPage {
  return {
    path: PATH,
    access: 'rate-limit-keys.read',
    notices: { revoked: 'The key is revoked. It stops within a second.' },
    show: async (visit, fault) => {
      const records = await parts.rateLimitKeys.all();
      return { kind: 'page', title: 'Rate limit keys', content: toContent(visit, records, fault?.values) };
    },
    actions: {
      create: {
        access: 'rate-limit-keys.create',
        needsFreshSignIn: true,
        run: async (visit, values) => reveal(parts, visit, await create(parts, visit, values)),
      },
      refresh: {
        access: 'rate-limit-keys.refresh',
        needsFreshSignIn: true,
        run: async (visit, values) => {
          const store = parts.rateLimitKeys.changedBy(visit.author);
          const context = { store, prefix: parts.settings.keyPrefix };
          return reveal(parts, visit, await refreshRateLimitKey(context, { keyId: values.text('key') }));
        },
      },
      revoke: revoking(parts),
    },
  };
}

async function reveal(parts: Parts, visit: Visit, made: CreatedRateLimitKey): Promise<Answer> {
  await parts.writeAudit(visit, { action: 'key.show', object: made.record.keyId });
  return toRevealed(parts, made);
}

function create({ rateLimitKeys, settings }: Parts, visit: Visit, values: FormValues): Promise<CreatedRateLimitKey> {
  const partner = values.text('partner');
  if (partner === '' || partner.length > PARTNER_CHARACTERS_MAX)
    throw invalidField('partner', `Say who gets the key, in 1 to ${PARTNER_CHARACTERS_MAX} characters.`);
  const context = { store: rateLimitKeys.changedBy(visit.author), prefix: settings.keyPrefix };
  return createRateLimitKey(context, { partner, ...planOf(values) });
}

const revoking = ({ rateLimitKeys }: Parts): FormAction => ({
  access: 'rate-limit-keys.revoke',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    await revokeRateLimitKey({ store: rateLimitKeys.changedBy(visit.author) }, values.text('key'));
    return { kind: 'see', to: PATH, notice: 'revoked' };
  },
});

function planOf(values: FormValues): Plan {
  return {
    calls: wholeOf(values.text('calls'), 'calls', PLAN_MAX.calls),
    windowS: wholeOf(values.text('window'), 'window', PLAN_MAX.windowS),
    expiresAt: dayOf(values.text('expires')),
  };
}

/** The beginning of a day in UTC; null for none. A day that does not exist would become another one. */
function dayOf(text: string): number | null {
  if (text === '') return null;
  const dayAt = Date.parse(`${text}T00:00:00Z`);
  if (!Number.isNaN(dayAt) && new Date(dayAt).toISOString().startsWith(text)) return dayAt;
  throw invalidField('expires', 'Give the day on which the key expires as 2027-01-31.');
}

function wholeOf(text: string, name: string, max: number): number {
  if (/^\d{1,8}$/.test(text) && Number(text) >= 1 && Number(text) <= max) return Number(text);
  throw invalidField(
    name,
    `Give ${name === 'calls' ? 'the calls of a window' : 'the seconds of a window'}, 1 to ${number(max)}.`,
  );
}

function toRevealed({ settings }: Parts, { record, key }: CreatedRateLimitKey): Answer {
  return {
    kind: 'page',
    title: `The key of ${record.partner}`,
    content: html`<div class="secret"><p><strong>Copy it now: it is shown this once.</strong></p><p>${copyable(key, 'the key')}</p></div>
<h2>A call with it</h2>
${copyableBlock(`curl -sS '${settings.chainApiUrl}/v1/chains/demo-chain/activity-history?page_size=2' -H 'x-api-key: ${key}'`, 'the command')}
<p><a class="button" href="${PATH}">Back to the keys</a></p>`,
  };
}

function toContent(visit: Visit, records: readonly RateLimitKeyRecord[], values?: FormValues): HtmlValue {
  const newest = records.toSorted((a, b) => b.createdAt - a.createdAt);
  const form = visit.form(
    'create',
    html`${field({ name: 'partner', label: 'Partner', value: values?.text('partner') ?? '', isRequired: true, charactersMax: PARTNER_CHARACTERS_MAX })}
${field({ name: 'calls', label: 'Calls of a window', type: 'number', value: values?.text('calls') ?? '', isRequired: true })}
${field({ name: 'window', label: 'Seconds of a window', type: 'number', value: values?.text('window') ?? String(PLAN_WINDOW_S), isRequired: true })}
${field({ name: 'expires', label: 'Expires on', value: values?.text('expires') ?? '', hint: 'A day such as 2027-01-31 (UTC). Empty: not by itself.' })}
<button>Create the key</button>`,
  );
  const list =
    newest.length === 0
      ? emptyState(
          'No key yet',
          html`<p>A rate limit key gives a partner more calls of the chain API than the ${number(1500)} in five minutes that everybody has.</p>`,
        )
      : table(
          'Rate limit keys',
          ['Partner', 'Key', 'Plan', 'State', 'Created', 'Change'],
          newest.map((each) => toRow(visit, each)),
        );
  return html`${list}${disclosure('Create a key', form, values?.text('deed') === 'create')}`;
}

function toRow(visit: Visit, record: RateLimitKeyRecord): HtmlValue[] {
  const { keyId, partner, first4, last4, calls, windowS, expiresAt, revokedAt, createdAt } = record;
  const isLive = isGoodAt(record, Date.now());
  const named = hidden('key', keyId);
  const className = 'inline';
  const changes = html`${visit.form('refresh', html`${named}<button class="outline">Refresh<span class="unseen"> the key of ${partner}</span></button>`, { className })}
${visit.form('revoke', html`${named}<button class="danger">Revoke<span class="unseen"> the key of ${partner}</span></button>`, { className })}`;
  const until = expiresAt === null ? '' : html`<br><span class="quiet">until ${time(expiresAt)}</span>`;
  return [
    partner,
    html`<code>${first4}…${last4}</code>`,
    html`${number(calls, 'calls')} in ${number(windowS, 's')}${until}`,
    isLive
      ? html`<span class="tag good">live</span>`
      : html`<span class="tag bad">${revokedAt === null ? 'expired' : 'revoked'}</span>`,
    time(createdAt),
    isLive ? changes : '',
  ];
}
