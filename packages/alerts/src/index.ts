export { type AlertRule, DEPLOYMENT_RULES, type DeploymentRule } from './deployment-rules.ts';
