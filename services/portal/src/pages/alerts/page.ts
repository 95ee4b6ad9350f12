/** The alerts of a project: firing alerts, rules, delivery and history. For operators, also the rules of the deployment. */
import {
  ALERT_EMAILS_MAX,
  ALERT_KEY_OVERLAP_MS,
  alertKeysOf,
  alertTargetsOf,
  type ProjectRecord,
  replaceAlertKey,
  setAlertTargets,
} from '@playline/access-keys';
import {
  type AlertRule,
  DEPLOYMENT_RULES,
  type FiringAlert,
  findProjectRule,
  isFiring,
  keyOfAlert,
  PROJECT_RULES,
  type ProjectRuleName,
  type StoredAlert,
  toChange,
} from '@playline/alerts';
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { invalidField, PublicError } from '@playline/errors';
import {
  buttonForm,
  copyable,
  disclosure,
  field,
  keyValues,
  multilineField,
  number,
  panel,
  status,
  table,
  time,
} from '../../frame/components.ts';
import { environmentPath } from '../../frame/layout.ts';
import { orNull } from '../../frame/or-null.ts';
import type { FormAction, FormValues, PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';
import { type HistoryView, readHistory, toHistory } from './history.ts';

type Parts = Pick<PageParts, 'alerts' | 'projects' | 'accounts' | 'reads' | 'frame' | 'oneTimeTokens' | 'writeAudit'>;
type Alert = FiringAlert & Pick<StoredAlert, 'acknowledged'>;

export function createAlertsPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/alerts',
    access: 'project.read',
    notices: {
      acknowledged: 'Alert acknowledged.',
      saved: 'Delivery settings saved.',
      tested: 'Test delivered.',
    },
    show: (visit, failure) => show(parts, visit, failure?.values),
    actions: {
      acknowledge: acknowledgeAction(parts),
      save: {
        access: 'alerts.set',
        run: async (visit, values) => {
          const targets = { alertWebhook: values.text('webhook'), alertEmails: toLines(values.text('emails')) };
          await setAlertTargets({ store: parts.projects.storeFor(visit.author) }, projectOf(visit).id, targets);
          return { kind: 'redirect', notice: 'saved' };
        },
      },
      test: testAction(parts),
      key: keyAction(parts),
    },
  };
}

const toLines = (text: string) => text.split(/[\s,]+/).filter((each) => each !== '');

async function readFiring({ alerts }: Parts, { id }: ProjectRecord): Promise<Alert[]> {
  const active = await alerts.store.read();
  const isOwn = (alert: StoredAlert): alert is Alert => alert.projectId === id && isFiring(alert);
  return active.filter(isOwn).toSorted((a, b) => b.firedAt - a.firedAt);
}

async function show(parts: Parts, visit: Visit, values?: FormValues): Promise<PageResponse> {
  const project = projectOf(visit);
  const history = orNull(readHistory(parts, visit));
  const [firing, accounts] = [await readFiring(parts, project), await parts.accounts.all()];
  const evaluatedAt = await parts.alerts.store.evaluatedAt();
  const toName = (id: string) => accounts.find((each) => each.id === id)?.name ?? id;
  const view = { parts, visit, firing, evaluatedAt, history: await history, toName, values };
  const content = html`${toFiring(view)}${toRules(view)}${toDelivery(view)}${toHistory(view)}
${visit.can('accounts.read') ? toDeploymentRules() : ''}`;
  return { kind: 'page', title: 'Alerts', content };
}

interface AlertsView extends HistoryView {
  readonly parts: Parts;
  readonly firing: readonly Alert[];
  /** Epoch milliseconds; null if the rules were never evaluated. */
  readonly evaluatedAt: number | null;
  readonly values: FormValues | undefined;
}

const acknowledgeAction = (parts: Parts): FormAction => ({
  access: 'alerts.acknowledge',
  run: async (visit, values) => {
    const firing = await readFiring(parts, projectOf(visit));
    const alert = firing.find((each) => keyOfAlert(each) === values.text('alert'));
    if (alert === undefined)
      throw new PublicError('RESOURCE_NOT_FOUND', { message: 'This alert is not firing any more.' });
    await parts.alerts.store.acknowledge(alert, {
      by: visit.author.changedBy,
      at: Date.now(),
      firedAt: alert.firedAt,
    });
    const { rule: object, environmentId: environment } = alert;
    await parts.writeAudit(visit, { action: 'alert.acknowledged', object, detail: { environment } });
    return { kind: 'redirect', notice: 'acknowledged' };
  },
});

/** Anyone who owns a project can enter the address of another person. */
const TESTS = { calls: 10, windowS: 3_600 };

const testAction = (parts: Parts): FormAction => ({
  access: 'alerts.set',
  run: async (visit) => {
    const project = projectOf(visit);
    const { alertWebhook, alertEmails } = alertTargetsOf(project);
    if (alertWebhook === '' && (alertEmails.length === 0 || !parts.alerts.delivery.hasEmail))
      throw invalidField('webhook', 'Save a webhook or an e-mail address first.');
    const attempts = { name: `alert test ${project.id}`, windowS: TESTS.windowS };
    if ((await parts.oneTimeTokens.countAttempt(attempts)) > TESTS.calls)
      throw new PublicError('TOO_MANY_REQUESTS_ERROR', {
        message: `Only ${TESTS.calls} tests per hour are allowed. Try again later.`,
      });
    await parts.writeAudit(visit, { action: 'alert.test', object: project.id });
    const [environment] = project.environments;
    const finding = { rule: PROJECT_RULES[0].name, projectId: project.id, environmentId: environment?.id ?? '' };
    const text = 'This is a test. The condition of the rule is not true.';
    const firedAt = Date.now();
    const change = toChange('test', { ...finding, value: 0, text }, { firedAt, changedAt: firedAt });
    const failures = await parts.alerts.delivery.test(change, project);
    if (failures.length === 0) return { kind: 'redirect', notice: 'tested' };
    const reasons = failures.map(({ channel, reason }) => `${channel}: ${reason}`);
    throw new PublicError('CONFLICT_ERROR', { message: `The test was not delivered by ${reasons.join(', ')}.` });
  },
});

const keyAction = (parts: Parts): FormAction => ({
  access: 'alerts.set',
  needsFreshSignIn: true,
  run: async (visit) => {
    const project = await replaceAlertKey({ store: parts.projects.storeFor(visit.author) }, projectOf(visit).id);
    const key = copyable(parts.alerts.delivery.keyOf(project), 'the signing key');
    const until = time(project.alertKeys.at(-1)! + ALERT_KEY_OVERLAP_MS);
    const content = html`<div class="secret"><p><strong>Copy this key now. It is shown only once.</strong> Store it in the receiver of the webhook.</p><p>${key}</p></div>
<p>Until ${until}, each request is also signed with the previous key. Change the receiver before then.</p>
<p><a class="button" href="${visit.path}">Back to alerts</a></p>`;
    return { kind: 'page', title: 'Signing key', content };
  },
});

/** The page of an environment that shows what a rule is about. */
const PAGES: Readonly<Partial<Record<ProjectRuleName, string>>> = {
  MessagesRejected: 'rejections',
  NoMessages: 'live',
  MessagesDelayed: 'overview',
  DeadLettersOpen: 'overview',
  ErasureLate: 'erasures',
  MintsPending: 'mints?status=pending',
  MintsFailed: 'mints?status=failed',
  KeyEndsSoon: 'keys',
  EndedKeyInUse: 'keys',
};

function toFiring(view: AlertsView): Markup {
  const { visit, firing, toName } = view;
  const rows = firing.map((alert) => {
    const rule = findProjectRule(alert.rule);
    const { environment, path } = findEnvironment(projectOf(visit), alert);
    const acknowledged =
      alert.acknowledged === null
        ? status('bad', 'not acknowledged')
        : html`${status('ok', toName(alert.acknowledged.by))} ${time(alert.acknowledged.at)}`;
    const acknowledge =
      alert.acknowledged === null && visit.can('alerts.acknowledge')
        ? buttonForm(visit, 'acknowledge', {
            text: 'Acknowledge',
            name: `${alert.rule} in ${environment}`,
            field: 'alert',
            value: keyOfAlert(alert),
          })
        : '';
    const detail = html`${rule === undefined ? '' : toExplanation(rule)}<p><a class="button outline" href="${path}/${PAGES[alert.rule] ?? 'overview'}">Open</a> ${acknowledge}</p>`;
    const cells = [toSeverity(rule), alert.rule, environment, time(alert.firedAt), alert.text, acknowledged];
    return { cells, detail, isOpen: alert.acknowledged === null };
  });
  const headers = ['Severity', 'Alert', 'Environment', 'Since', 'Value', 'Acknowledged'];
  const none = html`<p>${status('ok', 'No alert is firing.')}</p>`;
  const alerts = rows.length === 0 ? none : table('Firing alerts', headers, rows);
  return panel('Firing now', html`${alerts}${toEvaluated(view)}`);
}

/** Ten evaluations. A restart of the portal misses fewer. */
const EVALUATED_MS_MAX = 300_000;

function toEvaluated({ evaluatedAt, parts: { frame } }: Pick<AlertsView, 'evaluatedAt' | 'parts'>): Markup {
  const evaluated = evaluatedAt === null ? 'Not evaluated yet.' : html`Evaluated ${time(evaluatedAt)}.`;
  if (evaluatedAt !== null && frame.wallClockMs() - evaluatedAt <= EVALUATED_MS_MAX) return html`<p>${evaluated}</p>`;
  const warning = 'The rules are currently not evaluated, so alerts neither fire nor clear. Contact the operator.';
  return html`<p>${status('warn', warning)} ${evaluated}</p>`;
}

function findEnvironment({ id, environments }: ProjectRecord, { environmentId }: Pick<FiringAlert, 'environmentId'>) {
  const environment = environments.find((each) => each.id === environmentId)?.name ?? environmentId;
  return { environment, path: environmentPath(id, environment) };
}

const toSeverity = (rule: AlertRule | undefined): HtmlValue =>
  rule === undefined ? '–' : status(rule.severity === 'critical' ? 'bad' : 'warn', rule.severity);

const toExplanation = ({ meaning, action }: AlertRule): Markup =>
  keyValues([
    ['Meaning', toText(meaning)],
    ['What to do', toText(action)],
  ]);

/** Rules contain code in backticks, as in Markdown. */
const toText = (markdown: string): HtmlValue =>
  markdown.split('`').map((part, index) => (index % 2 === 0 ? part : html`<code>${part}</code>`));

function toRules({ firing }: AlertsView): Markup {
  const rows = PROJECT_RULES.map((rule) => {
    const count = firing.filter((alert) => alert.rule === rule.name).length;
    const state = count === 0 ? status('ok', 'not firing') : status('bad', `firing in ${number(count)}`);
    return { cells: [rule.name, toSeverity(rule), rule.summary, state], detail: toExplanation(rule) };
  });
  const note = 'Evaluated for each environment every 30 seconds. An alert fires and clears after two evaluations.';
  return panel('Rules', table('Rules', ['Rule', 'Severity', 'Fires when', 'State'], rows), { note });
}

function toDelivery({ parts: { alerts }, visit, values }: AlertsView): Markup {
  const project = projectOf(visit);
  const { alertWebhook, alertEmails } = alertTargetsOf(project);
  const state: [string, HtmlValue][] = [
    ['Webhook', alertWebhook === '' ? 'not set' : 'set'],
    ['E-mail', `${number(alertEmails.length, alertEmails.length === 1 ? 'address' : 'addresses')}`],
  ];
  if (!visit.can('alerts.set') || project.state === 'archived')
    return panel('Delivery', keyValues(state), { note: 'Owners can change the delivery.' });
  const submitted = values?.text('form') === 'save' ? values : undefined;
  const mail = alerts.delivery.hasEmail
    ? `One address per line, at most ${ALERT_EMAILS_MAX}.`
    : `E-mail is not set up on this instance: an operator has to set SMTP_URL and SMTP_FROM. One address per line, at most ${ALERT_EMAILS_MAX}.`;
  const form = visit.form(
    'save',
    html`${field({ name: 'webhook', label: 'Webhook', value: submitted?.text('webhook') ?? alertWebhook, hint: 'An http or https URL that receives a POST request with JSON when an alert fires and when it clears. Leave empty for none.', maxLength: 500 })}
${multilineField({ name: 'emails', label: 'E-mail addresses', value: submitted?.text('emails') ?? alertEmails.join('\n'), hint: mail })}
<button>Save delivery</button>`,
  );
  const test = visit.form('test', html`<button class="outline">Send a test</button>`, { className: 'inline' });
  return panel('Delivery', html`${form}${disclosure('Signing key of the webhook', toSigningKey(visit))}`, {
    actions: test,
  });
}

function toSigningKey(visit: Visit): Markup {
  const [createdAt = 0] = alertKeysOf(projectOf(visit), Date.now());
  const state = createdAt === 0 ? 'No key has been created yet.' : html`The key was created ${time(createdAt)}.`;
  const button = createdAt === 0 ? 'Create signing key' : 'Replace signing key';
  return html`<p>Each request has the header <code>playline-signature: t=&lt;seconds&gt;,v1=&lt;HMAC&gt;</code>. The HMAC is the hexadecimal HMAC-SHA256 of the seconds, a period and the body, with the signing key as text. For 24 hours after a replacement, the header has one <code>v1</code> for each key.</p>
${visit.form('key', html`<p>${state} A key is shown only once, when it is created.</p><button>${button}</button>`)}`;
}

function toDeploymentRules(): Markup {
  const rows = DEPLOYMENT_RULES.map((rule) => ({
    cells: [html`<code>${rule.name}</code>`, toSeverity(rule), toText(rule.meaning)],
    detail: keyValues([
      ['What to do', toText(rule.action)],
      ['Runbook', html`<code>infra/ALERTS.md#${rule.name.toLowerCase()}</code>`],
    ]),
  }));
  const note = 'Evaluated by Prometheus, not by the portal. Visible to administrators.';
  const rules = table('Rules of the deployment', ['Rule', 'Severity', 'Meaning'], rows);
  return panel('Rules of the deployment', disclosure(`${number(rows.length)} rules`, rules), { note });
}
