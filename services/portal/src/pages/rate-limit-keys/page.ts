/** Keys that raise the chain API limit for partners. Each key has a plan and does not belong to a project. */
import {
  type CreatedRateLimitKey,
  createRateLimitKey,
  isActiveAt,
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
  type Row,
  status,
  table,
  time,
} from '../../frame/components.ts';
import { number } from '../../frame/format.ts';
import { buttonForm, field, readWholeNumber } from '../../frame/forms.ts';
import type { FormValues, PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'rateLimitKeys' | 'settings' | 'writeAudit'>;

export function createRateLimitKeysPage(parts: Parts): PortalPage {
  const { rateLimitKeys, settings } = parts;
  const toContext = ({ author }: Visit) => ({ store: rateLimitKeys.storeFor(author), prefix: settings.keyPrefix });
  return {
    path: '/instance/rate-limit-keys',
    access: 'rate-limit-keys.read',
    notices: { revoked: 'Key revoked. The chain API rejects it within a second.' },
    show: async (visit, failure) => {
      const content = toContent(visit, await rateLimitKeys.all(), failure?.values);
      return { kind: 'page', title: 'Rate limit keys', content };
    },
    actions: {
      create: {
        access: 'rate-limit-keys.create',
        needsFreshSignIn: true,
        run: async (visit, values) => {
          const partner = values.text('partner');
          if (partner === '' || partner.length > PARTNER_CHARACTERS_MAX)
            throw invalidField('partner', `Enter the partner's name, at most ${PARTNER_CHARACTERS_MAX} characters.`);
          return showNewKey(parts, visit, await createRateLimitKey(toContext(visit), { partner, ...readPlan(values) }));
        },
      },
      refresh: {
        access: 'rate-limit-keys.refresh',
        needsFreshSignIn: true,
        run: async (visit, values) =>
          showNewKey(parts, visit, await refreshRateLimitKey(toContext(visit), { keyId: values.text('key') })),
      },
      revoke: {
        access: 'rate-limit-keys.revoke',
        needsFreshSignIn: true,
        run: async (visit, values) => {
          await revokeRateLimitKey(toContext(visit), values.text('key'));
          return { kind: 'redirect', notice: 'revoked' };
        },
      },
    },
  };
}

/** The page shown after a key is created. No other page shows the key. */
async function showNewKey(parts: Parts, visit: Visit, { record, key }: CreatedRateLimitKey): Promise<PageResponse> {
  await parts.writeAudit(visit, { action: 'key.show', object: record.keyId });
  const url = `${parts.settings.chainApiUrl}/v1/chains/demo-chain/activity-history?page_size=2`;
  return {
    kind: 'page',
    title: `Key for ${record.partner}`,
    content: html`<div class="secret"><p><strong>Copy this key now. It is shown only once.</strong></p><p>${copyable(key, 'the key')}</p></div>
<h2>Example request</h2>
${copyableBlock(`curl -sS '${url}' -H 'x-api-key: ${key}'`, 'the command')}
<p><a class="button" href="${visit.path}">Back to keys</a></p>`,
  };
}

const CALLS_RULE = `Enter the number of calls per window, from 1 to ${number(PLAN_MAX.calls)}.`;
const WINDOW_RULE = `Enter the window length in seconds, from 1 to ${number(PLAN_MAX.windowS)}.`;

function readPlan(values: FormValues): Plan {
  return {
    calls: readWholeNumber(values, 'calls', PLAN_MAX.calls, CALLS_RULE),
    windowS: readWholeNumber(values, 'window', PLAN_MAX.windowS, WINDOW_RULE),
    expiresAt: readDate(values.text('expires')),
  };
}

/** Returns the start of the day in UTC; null for ''. Rejects dates such as 2027-02-31, which `Date.parse` accepts. */
function readDate(text: string): number | null {
  if (text === '') return null;
  const startAt = Date.parse(`${text}T00:00:00Z`);
  if (!Number.isNaN(startAt) && new Date(startAt).toISOString().startsWith(text)) return startAt;
  throw invalidField('expires', 'Enter an expiry date such as 2027-01-31.');
}

function toContent(visit: Visit, records: readonly RateLimitKeyRecord[], values?: FormValues): HtmlValue {
  const newest = records.toSorted((a, b) => b.createdAt - a.createdAt);
  const form = visit.form(
    'create',
    html`${field({ name: 'partner', label: 'Partner', value: values?.text('partner') ?? '', isRequired: true, maxLength: PARTNER_CHARACTERS_MAX })}
${field({ name: 'calls', label: 'Calls per window', type: 'number', value: values?.text('calls') ?? '', isRequired: true })}
${field({ name: 'window', label: 'Window length in seconds', type: 'number', value: values?.text('window') ?? String(PLAN_WINDOW_S), isRequired: true })}
${field({ name: 'expires', label: 'Expiry date', value: values?.text('expires') ?? '', hint: 'A UTC date such as 2027-01-31. Leave empty for a key that never expires.' })}
<button>Create key</button>`,
  );
  const list =
    newest.length === 0
      ? emptyState(
          'No keys yet',
          html`<p>Create a key to raise a partner's chain API limit above the default of ${number(1500)} calls in five minutes.</p>`,
          { path: '/docs/limits', text: 'Limits of sizes and rates' },
        )
      : table(
          'Rate limit keys',
          ['Partner', 'Key', 'Plan', 'State', 'Created', 'Expires'],
          newest.map((each) => toRow(visit, each, values?.text('key') === each.keyId)),
        );
  return html`${list}${disclosure('Create a key', form, values?.text('form') === 'create')}`;
}

function toRow(visit: Visit, record: RateLimitKeyRecord, isOpen: boolean): Row {
  const { keyId, partner, first4, last4, calls, windowS, expiresAt, revokedAt, createdAt } = record;
  const isLive = isActiveAt(record, Date.now());
  const name = `the key for ${partner}`;
  const refresh = buttonForm(visit, 'refresh', { text: 'Refresh', name, field: 'key', value: keyId });
  const revoke = buttonForm(visit, 'revoke', { text: 'Revoke', name, kind: 'danger', field: 'key', value: keyId });
  const end = expiresAt === null ? 'never' : time(expiresAt);
  const endedState = revokedAt === null ? 'expired' : 'revoked';
  const cells = [
    partner,
    html`<code>${first4}…${last4}</code>`,
    html`${number(calls, calls === 1 ? 'call' : 'calls')} per ${number(windowS, 's')}`,
    isLive ? status('ok', 'live') : status('bad', endedState),
    time(createdAt),
    end,
  ];
  return isLive ? { cells, detail: html`${refresh}${revoke}`, isOpen } : cells;
}
