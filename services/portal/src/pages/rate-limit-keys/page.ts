/** Keys of partners for the chain API, each with its plan. They belong to no project. */
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
import type { Answer, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import type { PagesParts } from '../index.ts';

type Parts = Pick<PagesParts, 'rateLimitKeys' | 'settings' | 'writeAudit'>;

export function createRateLimitKeysPage(parts: Parts): PortalPage {
  const { rateLimitKeys, settings } = parts;
  const contextOf = ({ author }: Visit) => ({ store: rateLimitKeys.changedBy(author), prefix: settings.keyPrefix });
  return {
    path: '/instance/rate-limit-keys',
    access: 'rate-limit-keys.read',
    notices: { revoked: 'Key revoked. The chain API rejects it within a second.' },
    show: async (visit, fault) => {
      const content = toContent(visit, await rateLimitKeys.all(), fault?.values);
      return { kind: 'page', title: 'Rate limit keys', content };
    },
    actions: {
      create: {
        access: 'rate-limit-keys.create',
        needsFreshSignIn: true,
        run: async (visit, values) => {
          const partner = values.text('partner');
          if (partner === '' || partner.length > PARTNER_CHARACTERS_MAX)
            throw invalidField('partner', `Enter the partner's name, 1 to ${PARTNER_CHARACTERS_MAX} characters.`);
          return reveal(parts, visit, await createRateLimitKey(contextOf(visit), { partner, ...planOf(values) }));
        },
      },
      refresh: {
        access: 'rate-limit-keys.refresh',
        needsFreshSignIn: true,
        run: async (visit, values) =>
          reveal(parts, visit, await refreshRateLimitKey(contextOf(visit), { keyId: values.text('key') })),
      },
      revoke: {
        access: 'rate-limit-keys.revoke',
        needsFreshSignIn: true,
        run: async (visit, values) => {
          await revokeRateLimitKey(contextOf(visit), values.text('key'));
          return { kind: 'redirect', notice: 'revoked' };
        },
      },
    },
  };
}

/** The page after a key was created, the only one that shows it. */
async function reveal(parts: Parts, visit: Visit, { record, key }: CreatedRateLimitKey): Promise<Answer> {
  await parts.writeAudit(visit, { action: 'key.show', object: record.keyId });
  const url = `${parts.settings.chainApiUrl}/v1/chains/demo-chain/activity-history?page_size=2`;
  return {
    kind: 'page',
    title: `Key of ${record.partner}`,
    content: html`<div class="secret"><p><strong>Copy this key now. It is shown only once.</strong></p><p>${copyable(key, 'the key')}</p></div>
<h2>Example call</h2>
${copyableBlock(`curl -sS '${url}' -H 'x-api-key: ${key}'`, 'the command')}
<p><a class="button" href="${visit.path}">Back to keys</a></p>`,
  };
}

function planOf(values: FormValues): Plan {
  return {
    calls: numberOf(values.text('calls'), 'calls', PLAN_MAX.calls),
    windowS: numberOf(values.text('window'), 'window', PLAN_MAX.windowS),
    expiresAt: dayOf(values.text('expires')),
  };
}

/** The beginning of a day in UTC; null for ''. `Date.parse` would turn a day that does not exist into another one. */
function dayOf(text: string): number | null {
  if (text === '') return null;
  const dayAt = Date.parse(`${text}T00:00:00Z`);
  if (!Number.isNaN(dayAt) && new Date(dayAt).toISOString().startsWith(text)) return dayAt;
  throw invalidField('expires', 'Enter the day of expiry, such as 2027-01-31.');
}

function numberOf(text: string, name: 'calls' | 'window', max: number): number {
  if (/^\d{1,8}$/.test(text) && Number(text) >= 1 && Number(text) <= max) return Number(text);
  const what = name === 'calls' ? 'the calls per window' : 'the seconds of a window';
  throw invalidField(name, `Enter ${what}, from 1 to ${number(max)}.`);
}

function toContent(visit: Visit, records: readonly RateLimitKeyRecord[], values?: FormValues): HtmlValue {
  const newest = records.toSorted((a, b) => b.createdAt - a.createdAt);
  const form = visit.form(
    'create',
    html`${field({ name: 'partner', label: 'Partner', value: values?.text('partner') ?? '', isRequired: true, charactersMax: PARTNER_CHARACTERS_MAX })}
${field({ name: 'calls', label: 'Calls per window', type: 'number', value: values?.text('calls') ?? '', isRequired: true })}
${field({ name: 'window', label: 'Seconds of a window', type: 'number', value: values?.text('window') ?? String(PLAN_WINDOW_S), isRequired: true })}
${field({ name: 'expires', label: 'Expires on', value: values?.text('expires') ?? '', hint: 'A day such as 2027-01-31 (UTC). Empty: never.' })}
<button>Create key</button>`,
  );
  const list =
    newest.length === 0
      ? emptyState(
          'No keys yet',
          html`<p>Create a key to give a partner more calls of the chain API than the ${number(1500)} in five minutes that everyone has.</p>`,
        )
      : table(
          'Rate limit keys',
          ['Partner', 'Key', 'Plan', 'State', 'Created', 'Actions'],
          newest.map((each) => toRow(visit, each)),
        );
  return html`${list}${disclosure('Create a key', form, values?.text('form') === 'create')}`;
}

function toRow(visit: Visit, record: RateLimitKeyRecord): HtmlValue[] {
  const { keyId, partner, first4, last4, calls, windowS, expiresAt, revokedAt, createdAt } = record;
  const isLive = isGoodAt(record, Date.now());
  const button = (action: string, className: string, text: string) =>
    visit.form(
      action,
      html`${hidden('key', keyId)}<button class="${className}">${text}<span class="unseen"> the key of ${partner}</span></button>`,
      { className: 'inline' },
    );
  const until = expiresAt === null ? '' : html`<br><span class="quiet">until ${time(expiresAt)}</span>`;
  return [
    partner,
    html`<code>${first4}…${last4}</code>`,
    html`${number(calls, 'calls')} in ${number(windowS, 's')}${until}`,
    isLive
      ? html`<span class="tag good">live</span>`
      : html`<span class="tag bad">${revokedAt === null ? 'expired' : 'revoked'}</span>`,
    time(createdAt),
    isLive ? html`${button('refresh', 'outline', 'Refresh')}\n${button('revoke', 'danger', 'Revoke')}` : '',
  ];
}
