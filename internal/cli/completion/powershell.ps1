# Completion of pinch for PowerShell. Printed by: pinch completion powershell

$pinchTable = @{
@TABLE@
}

Register-ArgumentCompleter -Native -CommandName pinch -ScriptBlock {
    param($current, $line, $cursor)
    $before = @($line.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor -or "$_" -ne $current } | ForEach-Object { "$_" })
    $path = ''
    foreach ($word in @($before | Select-Object -Skip 1)) {
        if ($word.StartsWith('-')) { break }
        $next = ("$path $word").Trim()
        if (-not $pinchTable.ContainsKey("words:$next")) { break }
        $path = $next
    }
    $offer = $pinchTable["words:$path"]
    if ($pinchTable.ContainsKey("list:$path")) { $offer = @($offer) + @(& pinch completion --list $pinchTable["list:$path"] 2>$null) }
    $value = "value:${path}:$($before[-1])"
    if ($pinchTable.ContainsKey($value)) { $offer = $pinchTable[$value] }
    $list = "list:${path}:$($before[-1])"
    if ($pinchTable.ContainsKey($list)) { $offer = & pinch completion --list $pinchTable[$list] 2>$null }
    $offer | Where-Object { $_ -like "$current*" } | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
}
