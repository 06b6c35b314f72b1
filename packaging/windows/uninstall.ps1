<#
.SYNOPSIS
    Removes tillbridge from this machine; the configuration and the data stay, unless told otherwise.

.PARAMETER Everything
    Removes the data folder too: the ledger, the secrets and the configuration. It asks first.

.EXAMPLE
    .\uninstall.ps1
#>
[CmdletBinding(SupportsShouldProcess, ConfirmImpact = 'High')]
param(
    [string] $ProgramFolder = (Join-Path $env:ProgramFiles 'tillbridge'),
    [string] $DataFolder = (Join-Path $env:ProgramData 'tillbridge'),
    [string] $ServiceName = 'tillbridge',
    [switch] $Everything
)

Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

$principal = [Security.Principal.WindowsPrincipal] [Security.Principal.WindowsIdentity]::GetCurrent()
if (-not $principal.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)) {
    Write-Host 'This needs an administrator.' -ForegroundColor Red
    Write-Host 'Open PowerShell with "Run as administrator" and run it again.'
    exit 1
}

$service = Get-Service -Name $ServiceName -ErrorAction SilentlyContinue
if ($service) {
    if ($service.Status -ne 'Stopped') {
        Stop-Service -Name $ServiceName
        $service.WaitForStatus('Stopped', [TimeSpan]::FromSeconds(30))
    }
    & sc.exe delete $ServiceName | Out-Null
    if ($LASTEXITCODE -ne 0) {
        Write-Host "The service could not be removed (exit code $LASTEXITCODE)." -ForegroundColor Red
        Write-Host 'Close the window of the services, and run this again.'
        exit 1
    }
}
$source = "HKLM:\SYSTEM\CurrentControlSet\Services\EventLog\Application\$ServiceName"
if (Test-Path -LiteralPath $source) { Remove-Item -LiteralPath $source -Recurse -Force }
foreach ($folder in $ProgramFolder, "$ProgramFolder.new", "$ProgramFolder.old") {
    if (Test-Path -LiteralPath $folder) { Remove-Item -LiteralPath $folder -Recurse -Force }
}
if ($Everything) {
    if ((Test-Path -LiteralPath $DataFolder) -and $PSCmdlet.ShouldProcess($DataFolder, 'Remove the ledger, the secrets and the configuration')) {
        Remove-Item -LiteralPath $DataFolder -Recurse -Force
    }
}
else {
    Write-Host "Removed. The configuration and the data are still in $DataFolder; -Everything removes them too."
}
