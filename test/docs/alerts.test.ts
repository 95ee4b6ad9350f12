import { DEPLOYMENT_RULES, type DeploymentRule } from '@playline/alerts';
import { expect, it } from 'vitest';
import { stringify } from 'yaml';

// To regenerate infra/prometheus/alerts.yml and infra/ALERTS.md, run `npx vitest run test/docs/alerts.test.ts -u`.

const pageOf = ({ name }: DeploymentRule) => `infra/ALERTS.md#${name.toLowerCase()}`;

it('infra/prometheus/alerts.yml contains every rule', async () => {
  const rules = DEPLOYMENT_RULES.map((rule) => ({
    alert: rule.name,
    expr: rule.expr,
    ...(rule.forSeconds > 0 && { for: `${rule.forSeconds}s` }),
    labels: { severity: rule.severity },
    annotations: { summary: rule.summary, description: rule.meaning, runbook: pageOf(rule) },
  }));
  const yaml = stringify({ groups: [{ name: 'playline', interval: '15s', rules }] }, { lineWidth: 0 });
  await expect(`# Generated from packages/alerts/src/deployment-rules.ts\n${yaml}`).toMatchFileSnapshot(
    '../../infra/prometheus/alerts.yml',
  );
});

it('infra/ALERTS.md shows what every rule means and what to do', async () => {
  const sections = DEPLOYMENT_RULES.map(
    ({ name, severity, meaning, action, expr, forSeconds }) => `## ${name}

${severity}. ${meaning}

**Action**: ${action}

    ${expr}${forSeconds > 0 ? `   # for ${forSeconds} s` : ''}`,
  );
  const head = `# Alerts

Generated from the list of rules. Prometheus evaluates them (\`infra/prometheus/alerts.yml\`). The portal evaluates further rules per project. Each alert links to its section on this page.

**critical**: data or service is being lost, or soon will be; wake someone. **warning**: act within the day.`;
  await expect(`${[head, ...sections].join('\n\n')}\n`).toMatchFileSnapshot('../../infra/ALERTS.md');
});
