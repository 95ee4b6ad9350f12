export * from './active-alerts.ts';
export { type AlertRule, DEPLOYMENT_RULES, type DeploymentRule } from './deployment-rules.ts';
export * from './project-rules.ts';
